"""What somebody may do with a table, view or generic table: protect it, drop it, and bring dropped ones back."""

from typing import Final
from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from catalog import access
from catalog.models import Tabular
from catalog.services import protection
from catalog.services.deletion import drop_tabular, listing, undrop
from catalog.services.deletion.drop import DropOptions
from catalog.services.deletion.undrop import Target
from catalog.tabular_types import TABULAR_TYPES, TabularType, type_of
from console.listings import tabular_address
from console.pages.browse import crumbs, readable
from console.visits import Visit, form, page
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import InvalidArgument
from lakewarden.paging import Page, next_token

PAGE_SIZE: Final = 50


@page
def manage(visit: Visit, *, warehouse_id: UUID, kind: str, tabular_id: UUID) -> HttpResponse:
    """Protection and drop of an object; what the visitor may not do is said, with the right that it takes."""
    return _managed(visit, readable(visit, warehouse_id, _type(kind), tabular_id))


@form
def protect(visit: Visit, *, warehouse_id: UUID, kind: str, tabular_id: UUID) -> HttpResponse:
    """Set or lift the protection."""
    found, asked = _type(kind), visit.request.POST
    granted = access.tabular_in(visit.context, str(warehouse_id), found, str(tabular_id), found.actions.SET_PROTECTION)
    protected = asked.get("protected") == "true"
    if changed := changed_meanwhile(protection.of(granted), asked.get("seen", "")):
        return _managed(visit, granted, reason=asked.get("reason", ""), meanwhile=changed)
    protection.set_on_tabular(granted, protected=protected, reason=asked.get("reason", "").strip() or None)
    return _back(warehouse_id, kind, tabular_id)


@form
def drop(visit: Visit, *, warehouse_id: UUID, kind: str, tabular_id: UUID) -> HttpResponse:
    """Drop the object if its name was typed; the page comes back with what was typed if it was another one."""
    found, typed = _type(kind), visit.request.POST.get("name", "")
    granted = access.tabular_in(visit.context, str(warehouse_id), found, str(tabular_id), found.actions.DROP)
    if typed != granted.target.name:
        return _managed(visit, granted, typed=typed, problem="This is not its name: nothing was dropped")
    above = granted.target.namespace.id
    drop_tabular.drop(granted, DropOptions())
    return HttpResponseRedirect(reverse("console:namespace", args=[above]))


@page
def deleted(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """What was dropped and can be brought back, the most recently dropped first."""
    granted = access.warehouse(visit.context, str(warehouse_id), WarehouseAction.USE)
    token = visit.query.get("pageToken")
    asked = Page.parse({"pageSize": str(PAGE_SIZE)} | ({"pageToken": token} if token else {}))
    tabulars, last = listing.tabulars(granted, asked, namespace_id=None)
    above = [] if token else listing.namespaces(granted, Page.parse({"pageSize": str(PAGE_SIZE)}))[0]
    return visit.render(
        "deleted.html",
        section="warehouses",
        warehouse=granted.target,
        crumbs=crumbs(granted.target),
        dropped=[*above, *tabulars],
        next_page=None if last is None else next_token(last),
    )


@form
def bring_back(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """Restore one object, or a namespace with all that was dropped with it."""
    asked = visit.request.POST
    warehouse = access.warehouse(visit.context, str(warehouse_id), WarehouseAction.USE).target
    target = _dropped(visit, str(warehouse_id), asked.get("kind", ""), asked.get("id", ""))
    undrop.undrop([target], warehouse_id=warehouse.id, context=visit.context)
    return HttpResponseRedirect(reverse("console:deleted", args=[warehouse_id]))


def mark(found: protection.Protection) -> str:
    """What a form carries so that its sender does not overwrite what they have not seen."""
    return f"{found.protected} {found.at.isoformat() if found.at else ''}"


def changed_meanwhile(now: protection.Protection, seen: str) -> str | None:
    """What has changed since the form was loaded, as a sentence; None: nothing."""
    if not seen or seen == mark(now):
        return None
    who = f" by {now.by}" if now.by else ""
    state = f"It was protected{who}" if now.protected else "Its protection was lifted"
    return f"{state} after you opened this page, so your change was not made. What you see is how it is now"


def _dropped(visit: Visit, warehouse_id: str, kind: str, identifier: str) -> Target:
    if kind == "namespace":
        return access.dropped_namespace_in(visit.context, warehouse_id, identifier, NamespaceAction.UNDROP)
    found = _type(kind)
    return access.dropped_tabular_in(visit.context, warehouse_id, found, identifier, found.actions.UNDROP)


def _managed(
    visit: Visit,
    granted: Granted[Tabular],
    *,
    typed: str = "",
    problem: str | None = None,
    reason: str = "",
    meanwhile: str | None = None,
) -> HttpResponse:
    found = granted.target
    now = protection.of(granted)
    actions = type_of(found).actions
    warehouse = found.namespace.warehouse
    return visit.render(
        "manage.html",
        section="warehouses",
        found=found,
        word=type_of(found).word,
        address=tabular_address(found),
        crumbs=crumbs(warehouse, found.namespace),
        protection=now,
        mark=mark(now),
        reason=reason,
        meanwhile=meanwhile,
        may_protect=granted.allows(actions.SET_PROTECTION),
        may_drop=granted.allows(actions.DROP),
        granters=visit.granters(granted, actions.DROP),
        kept_for_s=warehouse.deletion_profile.expiration_s,
        typed=typed,
        problem=problem,
        names={name: _address(name, warehouse.id, found.kind, found.uuid) for name in ("protect", "drop")},
    )


def _type(kind: str) -> TabularType:
    found = TABULAR_TYPES.get(kind)
    if found is None:
        raise InvalidArgument(f"Unknown kind {kind[:80]!r}: {', '.join(TABULAR_TYPES)} are known")
    return found


def _back(warehouse_id: UUID, kind: str, tabular_id: UUID) -> HttpResponse:
    return HttpResponseRedirect(_address("manage", warehouse_id, kind, tabular_id))


def _address(name: str, warehouse_id: UUID, kind: str, tabular_id: UUID) -> str:
    return reverse(f"console:{name}", args=[warehouse_id, kind, tabular_id])
