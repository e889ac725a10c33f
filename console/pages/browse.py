"""Warehouses and namespaces: what lies in them, page by page, and the search in a warehouse."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from catalog import access
from catalog.models import Namespace, Tabular
from catalog.services import search
from catalog.tabular_types import TABULAR_TYPES, TabularType
from console.listings import NAMESPACES, Listing, listings, tabular_address
from console.visits import Visit, page
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import LakewardenError
from tenants.models import Warehouse

PAGE_SIZE: Final = 100


@dataclass(frozen=True, slots=True)
class Crumb:
    name: str
    address: str
    id: UUID


@page
def warehouse(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """The top-level namespaces."""
    granted = access.warehouse(visit.context, str(warehouse_id), WarehouseAction.LIST_NAMESPACES)
    found = listings(granted, {**visit.query, "kind": NAMESPACES}, size=PAGE_SIZE)
    return _shown(
        visit,
        "warehouse.html",
        found,
        warehouse=granted.target,
        crumbs=crumbs(granted.target),
        may_change_storage=granted.allows(WarehouseAction.UPDATE_STORAGE),
    )


@page
def namespace(visit: Visit, *, namespace_id: UUID) -> HttpResponse:
    """Child namespaces, tables, views and generic tables; `kind` shows only one of them."""
    granted = access.namespace_of_id(visit.context, namespace_id, NamespaceAction.GET_METADATA)
    found = granted.target
    return _shown(
        visit,
        "namespace.html",
        listings(granted, visit.query, size=PAGE_SIZE),
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
        found=found_entries(found),
    )


def found_entries(found: list[Tabular]) -> list[tuple[Tabular, str, str]]:
    """What a search shows of each: itself, its address, and the word for its type."""
    return [(each, tabular_address(each), TABULAR_TYPES[each.kind].word) for each in found]


def readable(visit: Visit, warehouse_id: UUID, kind: TabularType, identifier: UUID) -> Granted[Tabular]:
    """The one whose page is asked for, if the visitor may read its metadata. Raises the type's own 404."""
    granted = access.tabular_of_id(visit.context, str(warehouse_id), str(identifier))
    if granted.target.kind != kind.kind:
        raise kind.not_there(identifier)
    return granted


def crumbs(warehouse: Warehouse, namespace: Namespace | None = None) -> list[Crumb]:
    """The way from the warehouse down to the namespace."""
    way = [Crumb(warehouse.name, reverse("console:warehouse", args=[warehouse.id]), warehouse.id)]
    if namespace is not None:
        steps = zip(namespace.path, namespace.lineage, strict=True)
        way += [Crumb(name, reverse("console:namespace", args=[identifier]), identifier) for name, identifier in steps]
    return way


def _shown(visit: Visit, template: str, found: list[Listing], **shown: object) -> HttpResponse:
    if visit.is_partial:  # the next page of one list
        return visit.render("parts/entries.html", listing=found[0])
    is_empty = not any(listing.entries for listing in found)
    return visit.render(template, section="warehouses", listings=found, is_empty=is_empty, **shown)
