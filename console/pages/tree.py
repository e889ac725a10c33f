"""The tree of a project's warehouses, namespaces, tables and views, branch by branch, and the search in all of them.

The side panel asks for it after the page, so no page waits for it. Without scripts it is a page of plain links, whose
address says what is open.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from catalog import access
from catalog.models import Namespace
from catalog.services import search
from console.listings import Listing, listings, page_of, token_of
from console.pages.browse import found_entries
from console.visits import Visit, page
from lakewarden.authz.actions import NamespaceAction, ProjectAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import Forbidden, InvalidArgument, LakewardenError, NotFound
from lakewarden.paging import Page
from tenants import access as tenants_access
from tenants.models import Warehouse
from tenants.services import warehouses

PAGE_SIZE: Final = 50
MOST_OPEN: Final = 20
"""Branches that one answer opens: each costs a decision and the queries of its lists."""
SEARCHED: Final = 5
"""Warehouses that one search looks into."""
_MORE: Final = {
    "warehouse": "More warehouses",
    "namespace": "More namespaces",
    "table": "More tables",
    "view": "More views",
    "generic-table": "More generic tables",
}


@dataclass(frozen=True, slots=True)
class Node:
    """`part` is where its children are (None: it has none), `toggled` the tree without scripts, with this node opened
    or closed.
    """

    kind: str
    name: str
    address: str
    id: str = ""
    part: str | None = None
    toggled: str = ""
    is_open: bool = False
    children: list["Node"] = field(default_factory=list)


@page
def tree(visit: Visit) -> HttpResponse:
    """The warehouses, and below them what `open` names, by ids with commas between."""
    opened = _Opened(visit, _ids(visit.query.get("open", "")))
    nodes = opened.warehouses()
    if "pageToken" in visit.query and visit.is_partial:
        return visit.render("parts/tree_nodes.html", nodes=nodes)
    template = "parts/tree.html" if visit.is_partial else "tree.html"
    return visit.render(template, section="tree", nodes=nodes)


@page
def below_warehouse(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """The top-level namespaces, a page of them."""
    granted = access.warehouse(visit.context, str(warehouse_id), WarehouseAction.LIST_NAMESPACES)
    return _branch(visit, granted)


@page
def below_namespace(visit: Visit, *, namespace_id: UUID) -> HttpResponse:
    """What lies in a namespace; `kind` and `pageToken` ask for more of one kind."""
    granted = access.namespace_of_id(visit.context, namespace_id, NamespaceAction.GET_METADATA)
    return _branch(visit, granted)


@page
def find(visit: Visit) -> HttpResponse:
    """The tables and views of the project whose names are most like `q`."""
    text, problem, ranked = visit.query.get("q", "").strip(), None, []
    searched, last = _visible(visit, page_of({}, SEARCHED), [Warehouse.Status.ACTIVE])
    try:
        for each in searched if text else ():
            try:
                granted = access.warehouse(visit.context, str(each.id), WarehouseAction.USE)
            except (Forbidden, NotFound):
                continue
            ranked += search.search(granted, text)
    except LakewardenError as error:
        problem = error.message
    ranked.sort(key=lambda found: found.distance)
    return visit.render(
        "parts/found.html" if visit.is_partial else "search.html",
        section="tree",
        text=text,
        problem=problem,
        found=found_entries([each.tabular for each in ranked[: search.MAX_RESULTS]]),
        searched=[each.name for each in searched] if last is not None else None,
    )


@dataclass(frozen=True, slots=True)
class _Opened:
    """The nodes of one answer, of which `ids` are open; those that the visitor may not see, or that are gone, are
    not.
    """

    visit: Visit
    ids: frozenset[str] = frozenset()

    def warehouses(self) -> list[Node]:
        found, last = _visible(self.visit, page_of(self.visit.query, PAGE_SIZE), tuple(Warehouse.Status))
        nodes = [self._warehouse(each) for each in found]
        token = token_of(last)
        if token:
            here = f"{reverse('console:tree')}?pageToken={token}"
            nodes.append(Node("more", _MORE["warehouse"], here, part=here))
        return nodes

    def below(self, granted: Granted[Warehouse] | Granted[Namespace], query: Mapping[str, str]) -> Iterator[Node]:
        is_namespace = isinstance(granted.target, Namespace)
        place = "namespace" if is_namespace else "warehouse"
        address = reverse(f"console:{place}", args=[granted.target.id])
        part = reverse(f"console:tree-{place}", args=[granted.target.id])
        for listing in listings(granted, query, size=PAGE_SIZE):
            yield from self._listed(listing)
            if listing.more:
                rest = f"?kind={listing.kind}&pageToken={listing.more}"
                yield Node("more", _MORE[listing.kind], address + rest, part=part + rest)

    def _listed(self, listing: Listing) -> Iterator[Node]:
        for entry in listing.entries:
            if listing.kind == "namespace":
                yield self._branch("namespace", entry.id, entry.name, entry.address)
            else:
                yield Node(listing.kind, entry.name, entry.address)

    def _warehouse(self, warehouse: Warehouse) -> Node:
        address = reverse("console:warehouse", args=[warehouse.id])
        if warehouse.status != Warehouse.Status.ACTIVE:
            return Node("warehouse", warehouse.name, address)
        return self._branch("warehouse", warehouse.id, warehouse.name, address)

    def _branch(self, kind: str, identifier: UUID, name: str, address: str) -> Node:
        key, part = str(identifier), reverse(f"console:tree-{kind}", args=[identifier])
        changed = self.ids ^ {key}
        toggled = reverse("console:tree") + (f"?open={','.join(sorted(changed))}" if changed else "")
        children = self._children(kind, identifier) if key in self.ids else None
        return Node(kind, name, address, key, part, f"{toggled}#node-{key}", children is not None, children or [])

    def _children(self, kind: str, identifier: UUID) -> list[Node] | None:
        try:
            if kind == "warehouse":
                inside = access.warehouse(self.visit.context, str(identifier), WarehouseAction.LIST_NAMESPACES)
                return list(self.below(inside, {}))
            within = access.namespace_of_id(self.visit.context, identifier, NamespaceAction.GET_METADATA)
            return list(self.below(within, {}))
        except (Forbidden, NotFound):  # its rights may have changed since it was listed
            return None


def _branch(visit: Visit, granted: Granted[Warehouse] | Granted[Namespace]) -> HttpResponse:
    if not visit.is_partial:
        return HttpResponseRedirect(f"{reverse('console:tree')}?open={granted.target.id}")
    return visit.render("parts/tree_nodes.html", nodes=list(_Opened(visit).below(granted, visit.query)))


def _visible(visit: Visit, asked: Page, statuses: Collection[str]) -> tuple[list[Warehouse], str | None]:
    """A page of warehouses; none for who sees no project."""
    try:
        granted = tenants_access.project(visit.context, visit.project_id, ProjectAction.LIST_WAREHOUSES)
    except (Forbidden, NotFound):
        return [], None
    return warehouses.visible(granted, asked, statuses=statuses)


def _ids(text: str) -> frozenset[str]:
    """Raises InvalidArgument for what is not an id; the newest of too many."""
    try:
        ids = [str(UUID(each)) for each in text[:4000].split(",") if each]
    except ValueError:
        raise InvalidArgument("Invalid parameter open: ids with commas between them are expected") from None
    return frozenset(ids[-MOST_OPEN:])
