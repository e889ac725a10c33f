"""Storage layouts: which folders the catalog chooses for namespaces and tables, below the warehouse's location."""

import re
from typing import Annotated, ClassVar, Final, Literal
from urllib.parse import quote
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

_ALLOWED: Final = re.compile(r"[A-Za-z0-9._~=-]*")
"""What neither URLs, nor Hadoop's paths, nor object stores write in another way."""
_UUID, _NAME = "{uuid}", "{name}"


def _template(value: str) -> str:
    if not _ALLOWED.fullmatch(value.replace(_UUID, "").replace(_NAME, "")):
        raise ValueError(
            f"{value[:80]!r} is not a valid template: {_UUID}, {_NAME}, letters, digits and . _ ~ = - are allowed"
        )
    if _UUID not in value and _NAME not in value:
        raise ValueError(f"{value[:80]!r} is not a valid template: it must contain {_UUID} or {_NAME}")
    return value


def _unique(value: str) -> str:
    if _UUID not in value:
        raise ValueError(f"{value[:80]!r} must contain {_UUID}: tables of several namespaces may have the same name")
    return value


Template = Annotated[str, StringConstraints(max_length=255), AfterValidator(_template)]
"""A folder's name; `{name}` becomes the percent-encoded name of the object."""
UniqueTemplate = Annotated[Template, AfterValidator(_unique)]


class Layout(BaseModel):
    """A namespace's location is fixed when it is created; a layout that is set later applies to new ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    FOLLOWS_NAMES: ClassVar = False
    """Whether the folders of namespaces say where they are in the hierarchy, so that they cannot be moved."""

    @property
    def tabular_template(self) -> str:
        return _UUID

    @property
    def has_own_folders(self) -> bool:
        """Whether nobody can know the location of a new namespace in advance."""
        return True

    @property
    def has_own_tabulars(self) -> bool:
        """Whether nobody can know the location of a new table in advance."""
        return _UUID in self.tabular_template

    def namespace_location(self, above: str | None, *, base: str, name: str, uuid: UUID) -> str:  # noqa: ARG002
        """`above` is the parent's location (None: a top-level namespace), `base` the warehouse's."""
        return f"{base}/{uuid}"

    def tabular_location(self, above: str, *, name: str, uuid: UUID) -> str:
        """Of a table, view or generic table in the namespace at `above`."""
        return f"{above}/{_rendered(self.tabular_template, name=name, uuid=uuid)}"


class DefaultLayout(Layout):
    """A folder for each namespace, whatever its level, and in it one for each table; both are named by ids."""

    type: Literal["default"]


class FullHierarchy(Layout):
    """A folder for each namespace in that of its parent."""

    FOLLOWS_NAMES: ClassVar = True

    type: Literal["full-hierarchy"]
    namespace: Template
    tabular: Template

    @property
    def tabular_template(self) -> str:
        return self.tabular

    @property
    def has_own_folders(self) -> bool:
        return _UUID in self.namespace

    def namespace_location(self, above: str | None, *, base: str, name: str, uuid: UUID) -> str:
        return f"{above or base}/{_rendered(self.namespace, name=name, uuid=uuid)}"


class TabularOnly(Layout):
    """No folders for namespaces: all tables are directly in the warehouse's location."""

    type: Literal["tabular-only"]
    tabular: UniqueTemplate

    @property
    def tabular_template(self) -> str:
        return self.tabular

    def namespace_location(self, above: str | None, *, base: str, name: str, uuid: UUID) -> str:  # noqa: ARG002
        return base


StorageLayout = Annotated[DefaultLayout | FullHierarchy | TabularOnly, Field(discriminator="type")]
DEFAULT: Final = DefaultLayout(type="default")


def _rendered(template: str, *, name: str, uuid: UUID) -> str:
    # the ids first: a name may contain "{uuid}", which percent-encoding makes harmless
    return template.replace(_UUID, str(uuid)).replace(_NAME, quote(name, safe=""))
