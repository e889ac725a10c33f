"""Warehouses and namespaces: what lies in them, page by page, and the search in a warehouse."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from catalog import access
from catalog.models import Namespace, Tabular
from catalog.models.namespace import ListedNamespace
from catalog.models.tabular import ListedTabular
from catalog.services import namespaces, search, tabulars
from catalog.tabular_types import TABULAR_TYPES, TabularType
from console.visits import Visit, page
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import InvalidArgument, LakewardenError
from lakewarden.paging import Page, next_token
from tenants.models import Warehouse

PAGE_SIZE: Final = 100
_NAMESPACES: Final = "namespace"
_KINDS: Final = {
    Tabular.Kind.TABLE: ("Tables", NamespaceAction.LIST_TABLES),
    Tabular.Kind.VIEW: ("Views", NamespaceAction.LIST_VIEWS),
    Tabular.Kind.GENERIC_TABLE: ("Generic tables", NamespaceAction.LIST_GENERIC_TABLES),
}


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    address: str
    is_protected: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of what has one kind; `more` is the token of the next page."""

    kind: str
    title: str
    entries: list[Entry]
    more: str | None


@dataclass(frozen=True, slots=True)
class Crumb:
    name: str
    address: str


@page
def warehouse(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """The top-level namespaces."""
    granted = access.warehouse(visit.context, str(warehouse_id), WarehouseAction.LIST_NAMESPACES)
    listings = [_namespaces(granted, _asked(visit, _NAMESPACES))]
    return _shown(visit, "warehouse.html", listings, warehouse=granted.target, crumbs=crumbs(granted.target))


@page
def namespace(visit: Visit, *, namespace_id: UUID) -> HttpResponse:
    """Child namespaces, tables, views and generic tables; `kind` shows only one of them."""
    granted = access.namespace_of_id(visit.context, namespace_id, NamespaceAction.GET_METADATA)
    found, only = granted.target, visit.query.get("kind")
    if only is not None and only not in {_NAMESPACES, *_KINDS}:
        raise InvalidArgument(f"Unknown kind {only[:80]!r}: namespace, table, view or generic-table is expected")
    listings = [_namespaces(granted, _asked(visit, _NAMESPACES))] if only in {None, _NAMESPACES} else []
    for kind, (title, action) in _KINDS.items():
        if only in {None, kind} and granted.allows(action):
            listings.append(_tabulars(granted, kind, title, _asked(visit, kind)))
    return _shown(
        visit,
        "namespace.html",
        listings,
        namespace=found,
        warehouse=found.warehouse,
        properties=sorted(found.properties.items()),
        crumbs=crumbs(found.warehouse, found),
    )


@page
def find(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """The tables and views whose names are most like `q`."""
    granted = access.warehouse(visit.context, str(warehouse_id), WarehouseAction.USE)
    text, problem, found = visit.query.get("q", "").strip(), None, []
    if text:
        try:
            found = [each.tabular for each in search.search(granted, text)]
        except LakewardenError as error:
            problem = error.message
    template = "parts/found.html" if visit.is_partial else "search.html"
    return visit.render(
        template,
        section="warehouses",
        warehouse=granted.target,
        crumbs=crumbs(granted.target),
        text=text,
        problem=problem,
        found=[(each, tabular_address(each), TABULAR_TYPES[each.kind].word) for each in found],
    )


def readable(visit: Visit, warehouse_id: UUID, kind: TabularType, identifier: UUID) -> Granted[Tabular]:
    """The one whose page is asked for, if the visitor may read its metadata. Raises the type's own 404."""
    granted = access.tabular_of_id(visit.context, str(warehouse_id), str(identifier))
    if granted.target.kind != kind.kind:
        raise kind.not_there(identifier)
    return granted


def tabular_address(tabular: Tabular) -> str:
    return _tabular_address(tabular.warehouse_id, tabular.kind, tabular.uuid)


def crumbs(warehouse: Warehouse, namespace: Namespace | None = None) -> list[Crumb]:
    """The way from the warehouse down to the namespace."""
    way = [Crumb(warehouse.name, reverse("console:warehouse", args=[warehouse.id]))]
    if namespace is not None:
        steps = zip(namespace.path, namespace.lineage, strict=True)
        way += [Crumb(name, reverse("console:namespace", args=[identifier])) for name, identifier in steps]
    return way


def _shown(visit: Visit, template: str, listings: list[Listing], **shown: object) -> HttpResponse:
    if visit.is_partial:  # the next page of one list
        return visit.render("parts/entries.html", listing=listings[0])
    is_empty = not any(listing.entries for listing in listings)
    return visit.render(template, section="warehouses", listings=listings, is_empty=is_empty, **shown)


def _asked(visit: Visit, kind: str) -> Page:
    token = visit.query.get("pageToken") if visit.query.get("kind", kind) == kind else None
    return Page.parse({"pageSize": str(PAGE_SIZE)} | ({"pageToken": token} if token else {}))


def _namespaces(parent: Granted[Warehouse] | Granted[Namespace], asked: Page) -> Listing:
    found, last = namespaces.children(parent, asked)
    return Listing(_NAMESPACES, "Namespaces", [_namespace_entry(each) for each in found], _token(last))


def _namespace_entry(found: ListedNamespace) -> Entry:
    return Entry(found.path[-1], reverse("console:namespace", args=[found.id]), found.is_protected)


def _tabulars(granted: Granted[Namespace], kind: Tabular.Kind, title: str, asked: Page) -> Listing:
    found, last = tabulars.listed(granted, kind, asked)
    within = granted.target.warehouse_id
    return Listing(kind.value, title, [_tabular_entry(within, kind, each) for each in found], _token(last))


def _tabular_entry(warehouse_id: UUID, kind: str, found: ListedTabular) -> Entry:
    return Entry(found.name, _tabular_address(warehouse_id, kind, found.id), found.is_protected)


def _tabular_address(warehouse_id: UUID, kind: str, identifier: UUID) -> str:
    return reverse(f"console:{kind}", args=[warehouse_id, identifier])


def _token(last: str | None) -> str | None:
    return None if last is None else next_token(last)
