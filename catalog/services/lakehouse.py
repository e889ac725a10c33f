"""What only the paths below `/lakehouse` need: the warehouse that they name, and namespaces of all levels."""

from uuid import UUID

from catalog.models import Namespace
from lakewarden import config
from lakewarden.authz.actions import WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from lakewarden.errors import NoSuchWarehouse
from lakewarden.names import match_key
from lakewarden.paging import Page
from tenants import access
from tenants.access import ensure_active
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


def warehouse_id(context: RequestContext, name: str | None, *, project: str | None = None) -> UUID:
    """The warehouse of a URL: `name` may be `<project>/<name>`, None is the default one.

    Raises NoSuchWarehouse if it is missing, hidden or ambiguous.
    """
    if name is None:
        return _only_warehouse_id(context)
    if project is None:
        before, separator, last = name.rpartition("/")
        project, name = (before, last) if separator else (access.project_id_of(context), name)
    return access.warehouse_named(context, name, WarehouseAction.USE, project_id=project).target.id


def _only_warehouse_id(context: RequestContext) -> UUID:
    found = find_warehouse_id()
    missing = NoSuchWarehouse(
        "A default warehouse does not exist (LAKEWARDEN__LAKEHOUSE__WAREHOUSE names it; otherwise it "
        "is the only one of the default project): name a warehouse, for example /lakehouse/w/<warehouse>/v1"
    )
    if found is None:
        raise missing
    try:
        ensure_active(access.warehouse(context, found, WarehouseAction.USE).target)
    except NoSuchWarehouse:
        raise missing from None  # a hidden warehouse is answered like a missing one
    return found


def all_namespaces(granted: Granted[Warehouse], page: Page) -> tuple[list[list[str]], str | None]:
    """Paths of all levels, each parent before its children, and the key behind which the next page starts."""
    shown_to = access.shown_to(granted, WarehouseAction.LIST_EVERYTHING, granted.target.project)
    found = Namespace.objects.of_all_levels(
        granted.target.id, after=page.after or "", limit=page.limit, shown_to=shown_to
    )
    return page.cut(found)
