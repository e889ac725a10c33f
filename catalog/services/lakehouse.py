"""Queries that only the `/lakehouse/v1` facade needs: its warehouse, and namespaces of all levels."""

from uuid import UUID

from catalog.models import Namespace
from lakewarden import config
from lakewarden.authz.actions import WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.names import match_key
from lakewarden.paging import Page
from tenants import access
from tenants.models import Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID

DEFAULT_NAME = "default"


def find_warehouse_id() -> UUID | None:
    """The configured warehouse, or the default project's: the one named `default`, or its only one.

    None if there is none, or several.
    """
    configured = config.current().lakehouse.warehouse
    project, _, name = (configured or DEFAULT_NAME).rpartition("/")
    ids = Warehouse.objects.filter(project_id=project or DEFAULT_PROJECT_ID).values_list("id", flat=True)
    named = list(ids.filter(name_key=match_key(name)))
    found = named or ([] if configured else list(ids[:2]))
    return found[0] if len(found) == 1 else None


def all_namespaces(granted: Granted[Warehouse], page: Page) -> tuple[list[list[str]], str | None]:
    """Paths of all levels, each parent before its children, and the key behind which the next page starts."""
    shown_to = access.shown_to(granted, WarehouseAction.LIST_EVERYTHING, granted.target.project)
    found = Namespace.objects.of_all_levels(
        granted.target.id, after=page.after or "", limit=page.limit, shown_to=shown_to
    )
    return page.cut(found)
