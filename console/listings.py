"""Pages of what lies in a warehouse or namespace, as far as the visitor may see it; for the lists and the tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.urls import reverse

from catalog.models import Namespace, Tabular
from catalog.services import namespaces, tabulars
from lakewarden.authz.actions import NamespaceAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import InvalidArgument
from lakewarden.paging import Page, next_token
from tenants.models import Warehouse

NAMESPACES: Final = "namespace"
_KINDS: Final = {
    Tabular.Kind.TABLE: ("Tables", NamespaceAction.LIST_TABLES),
    Tabular.Kind.VIEW: ("Views", NamespaceAction.LIST_VIEWS),
    Tabular.Kind.GENERIC_TABLE: ("Generic tables", NamespaceAction.LIST_GENERIC_TABLES),
}


@dataclass(frozen=True, slots=True)
class Entry:
    id: UUID
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


def listings(granted: Granted[Warehouse] | Granted[Namespace], query: Mapping[str, str], *, size: int) -> list[Listing]:
    """First pages of all kinds; with `kind` in the query only that one, from `pageToken` on."""
    only = query.get("kind")
    if only is not None and only not in {NAMESPACES, *_KINDS}:
        raise InvalidArgument(f"Unknown kind {only[:80]!r}: namespace, table, view or generic-table is expected")
    found = [_namespaces(granted, _asked(query, NAMESPACES, size))] if only in {None, NAMESPACES} else []
    if not isinstance(granted.target, Namespace):
        return found
    for kind, (title, action) in _KINDS.items():
        if only in {None, kind} and granted.allows(action):
            found.append(_tabulars(granted, kind, title, _asked(query, kind, size)))
    return found


def tabular_address(tabular: Tabular) -> str:
    return _tabular_address(tabular.warehouse_id, tabular.kind, tabular.uuid)


def page_of(query: Mapping[str, str], size: int) -> Page:
    token = query.get("pageToken")
    return Page.parse({"pageSize": str(size)} | ({"pageToken": token} if token else {}))


def token_of(last: str | None) -> str | None:
    return None if last is None else next_token(last)


def _asked(query: Mapping[str, str], kind: str, size: int) -> Page:
    return page_of(query if query.get("kind", kind) == kind else {}, size)


def _namespaces(parent: Granted[Warehouse] | Granted[Namespace], asked: Page) -> Listing:
    found, last = namespaces.children(parent, asked)
    entries = [
        Entry(each.id, each.path[-1], reverse("console:namespace", args=[each.id]), each.is_protected) for each in found
    ]
    return Listing(NAMESPACES, "Namespaces", entries, token_of(last))


def _tabulars(granted: Granted[Namespace], kind: Tabular.Kind, title: str, asked: Page) -> Listing:
    found, last = tabulars.listed(granted, kind, asked)
    within = granted.target.warehouse_id
    entries = [Entry(each.id, each.name, _tabular_address(within, kind, each.id), each.is_protected) for each in found]
    return Listing(kind.value, title, entries, token_of(last))


def _tabular_address(warehouse_id: UUID, kind: str, identifier: UUID) -> str:
    return reverse(f"console:{kind}", args=[warehouse_id, identifier])
