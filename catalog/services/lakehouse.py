"""What the `/lakehouse/v1` facade asks and `/catalog/v1` does not: the one warehouse, and namespaces of all levels."""

from uuid import UUID

from catalog.models import Namespace
from lakewarden import config
from lakewarden.authz.interface import Granted
from lakewarden.names import match_key
from lakewarden.paging import Page
from tenants.models import Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID

DEFAULT_NAME = "default"


def find_warehouse_id() -> UUID | None:
    """The configured warehouse, else the default project's: the one named `default`, or its only one.

    None when there is none, or a choice.
    """
    configured = config.current().lakehouse.warehouse
    project, _, name = (configured or DEFAULT_NAME).rpartition("/")
    ids = Warehouse.objects.filter(project_id=project or DEFAULT_PROJECT_ID).values_list("id", flat=True)
    named = list(ids.filter(name_key=match_key(name)))
    found = named or ([] if configured else list(ids[:2]))
    return found[0] if len(found) == 1 else None


def all_namespaces(granted: Granted[Warehouse], page: Page) -> tuple[list[list[str]], str | None]:
    """Paths of all levels, each parent before its children, and the key behind which the next page starts."""
    rows = Namespace.objects.filter(warehouse=granted.target, path_key__gt=page.after or "").order_by("path_key")
    return page.cut(list(rows.values_list("path", "path_key")[: page.limit]))
