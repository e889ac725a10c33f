"""The paths of tables, views and generic tables in the management API."""

from typing import Final

from catalog.tabular_types import TabularType

IN_WAREHOUSE: Final = "warehouse/<str:warehouse_id>/"


def id_name(kind: TabularType) -> str:
    """The name of its id in a path, such as `generic_table_id`."""
    return f"{kind.word.replace(' ', '_')}_id"


def path_of(kind: TabularType) -> str:
    return f"{IN_WAREHOUSE}{kind.kind.value}/<str:{id_name(kind)}>"
