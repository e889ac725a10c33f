"""Rights on a warehouse, a namespace, a table, a view or a generic table, as a matrix of who has what."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from catalog import access
from catalog.models import Namespace, Tabular
from catalog.tabular_types import TABULAR_TYPES, word_of
from console.listings import tabular_address
from console.pages.browse import Crumb, crumbs
from console.visits import Visit, form, page
from lakewarden.authz.actions import NamespaceAction, ObjectType, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.model import DESCRIPTIONS, Privilege
from lakewarden.context import PrincipalId
from lakewarden.errors import InvalidArgument, LakewardenError
from permissions import grants
from permissions.grants import GrantEntry
from tenants import access as tenants_access
from tenants.models import Warehouse
from tenants.services import principal_names

SHOWN: Final = 200
"""Most principals on a page."""
_PLACES: Final = (ObjectType.WAREHOUSE, ObjectType.NAMESPACE)


@dataclass(frozen=True, slots=True)
class Cell:
    """Whether the privilege is granted on the object itself, and whether the visitor may change that."""

    privilege: Privilege
    is_granted: bool
    may_change: bool


@page
def rights(visit: Visit, *, warehouse_id: UUID, kind: str, object_id: UUID) -> HttpResponse:
    """All direct grants on the object, for those who may read them."""
    return _shown(visit, object_of(visit, warehouse_id, kind, object_id, reading=True))


@form
def change(visit: Visit, *, warehouse_id: UUID, kind: str, object_id: UUID) -> HttpResponse:
    """Grant or revoke one privilege; a mistake is shown on the page, with what was typed."""
    asked = visit.request.POST
    granted = object_of(visit, warehouse_id, kind, object_id, reading=False)
    entry = [GrantEntry(PrincipalId(asked.get("principal", "").strip()), _privilege(asked.get("privilege", "")))]
    is_revoked = asked.get("revoke") == "true"
    try:
        if not is_revoked:
            project_id = granted.chain[1].id
            tenants_access.note_foreign_roles(visit.context, [entry[0].principal], project_id=project_id)
        grants.apply(granted, writes=[] if is_revoked else entry, deletes=entry if is_revoked else [])
    except LakewardenError as error:
        reader = object_of(visit, warehouse_id, kind, object_id, reading=True)
        return _shown(visit, reader, entry=entry[0], problem=error.message)
    return HttpResponseRedirect(reverse("console:rights", args=[warehouse_id, kind, object_id]))


def _shown(
    visit: Visit, granted: Granted[object], *, entry: GrantEntry | None = None, problem: str | None = None
) -> HttpResponse:
    kind = granted.ref.type
    warehouse, way = way_to(granted.target)
    allowed = grants.grantable(kind, granted.privileges)
    held: dict[PrincipalId, set[Privilege]] = {}
    for each in grants.on(granted):
        held.setdefault(each.principal, set()).add(each.privilege)
    names = principal_names.of(list(held)[:SHOWN])
    return visit.render(
        "rights.html",
        section="warehouses",
        crumbs=way,
        name=str(granted.target),
        word=word_of(kind.value),
        privileges=[(each, DESCRIPTIONS[each].text) for each in allowed],
        matrix=[
            (
                principal,
                names.get(principal, ""),
                [Cell(each, each in held[principal], allowed[each]) for each in allowed],
            )
            for principal in list(held)[:SHOWN]
        ],
        in_all=len(held),
        grantable=[privilege for privilege, is_allowed in allowed.items() if is_allowed],
        address=reverse("console:rights", args=[warehouse.id, kind.value, granted.ref.public_id]),
        entry=entry,
        problem=problem,
    )


def object_of(visit: Visit, warehouse_id: UUID, kind: str, object_id: UUID, *, reading: bool) -> Granted[object]:
    """The object if the visitor may read its grants (`reading`), or see it: `grants.apply` decides on each change."""
    context, within, identifier = visit.context, str(warehouse_id), str(object_id)
    if kind == ObjectType.WAREHOUSE.value:
        seen = WarehouseAction.READ_GRANTS if reading else WarehouseAction.GET_METADATA
        return tenants_access.warehouse(context, object_id, seen)
    if kind == ObjectType.NAMESPACE.value:
        of = NamespaceAction.READ_GRANTS if reading else NamespaceAction.GET_METADATA
        return access.namespace_in(context, within, identifier, of)
    found = TABULAR_TYPES.get(kind)
    if found is None:
        known = ", ".join([*(place.value for place in _PLACES), *TABULAR_TYPES])
        raise InvalidArgument(f"Unknown kind {kind[:80]!r}: {known} are known")
    action = found.actions.READ_GRANTS if reading else found.actions.INCLUDE_IN_LIST
    return access.tabular_in(context, within, found, identifier, action)


def way_to(target: object) -> tuple[Warehouse, list[Crumb]]:
    """The warehouse of an object, and the crumbs down to it."""
    if isinstance(target, Tabular):
        above = crumbs(target.namespace.warehouse, target.namespace)
        return target.namespace.warehouse, [*above, Crumb(target.name, tabular_address(target), target.uuid)]
    if isinstance(target, Namespace):
        return target.warehouse, crumbs(target.warehouse, target)
    assert isinstance(target, Warehouse)  # noqa: S101 the third of the union
    return target, crumbs(target)


def _privilege(text: str) -> Privilege:
    try:
        return Privilege(text)
    except ValueError:
        raise InvalidArgument(f"Unknown privilege {text[:80]!r}") from None
