"""What differs between tables, views and generic tables; everything else treats them alike."""

from dataclasses import dataclass
from typing import Final

from catalog.models import Tabular
from lakewarden.authz.actions import GenericTableAction, ObjectType, TableAction, ViewAction
from lakewarden.errors import NoSuchGenericTable, NoSuchTable, NoSuchView, NotFound

TabularActions = type[TableAction] | type[ViewAction] | type[GenericTableAction]


@dataclass(frozen=True, slots=True)
class TabularType:
    """`missing` is raised where there is none, or the caller may not see it."""

    kind: Tabular.Kind
    actions: TabularActions
    missing: type[NotFound]

    @property
    def object_type(self) -> ObjectType:
        return ObjectType(self.kind.value)

    @property
    def word(self) -> str:
        """Its name in messages, such as `generic table`."""
        return self.kind.label

    @property
    def event(self) -> str:
        """Its name in the types of events, such as `GenericTable`."""
        return self.word.title().replace(" ", "")

    def not_there(self, shown: object) -> NotFound:
        return self.missing(f"{self.word.capitalize()} does not exist: {shown}")


TABLE: Final = TabularType(Tabular.Kind.TABLE, TableAction, NoSuchTable)
VIEW: Final = TabularType(Tabular.Kind.VIEW, ViewAction, NoSuchView)
GENERIC_TABLE: Final = TabularType(Tabular.Kind.GENERIC_TABLE, GenericTableAction, NoSuchGenericTable)
TABULAR_TYPES: Final = {each.kind.value: each for each in (TABLE, VIEW, GENERIC_TABLE)}
"""By the `kind` of a row."""


def type_of(tabular: Tabular) -> TabularType:
    return TABULAR_TYPES[tabular.kind]


def word_of(kind: str) -> str:
    """What a kind is called in messages; a namespace has its own word already."""
    return TABULAR_TYPES[kind].word if kind in TABULAR_TYPES else kind
