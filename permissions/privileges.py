"""Looks up privileges on many objects at once, to answer questions about rights. Never used to authorize a request.

Called by the actions and batch checks of the management API. The objects of each type are read together, and results
are kept for the rest of the request.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.db import models
from django.db.models import Q

from catalog.access import namespace_chain, tabular_chain
from catalog.models import Namespace, Tabular
from catalog.models.namespace import can_be, path_key
from catalog.tabular_types import TABULAR_TYPES, word_of
from lakewarden import backends
from lakewarden.authz.actions import (
    ACTIONS,
    ObjectType,
    RoleAction,
)
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.model import Privilege, is_allowed
from lakewarden.context import PrincipalId, RequestContext
from lakewarden.errors import (
    Forbidden,
    LakewardenError,
    NoSuchNamespace,
    NoSuchProject,
    NoSuchRole,
    NoSuchTagDefinition,
    NoSuchWarehouse,
)
from lakewarden.names import match_key
from tenants import access
from tenants.models import Project, Role, TagDefinition, Warehouse
from tenants.models.project import PROJECT_ID

M = TypeVar("M", bound=models.Model)
P = TypeVar("P", TagDefinition, Role, Warehouse)

_MISSING: dict[ObjectType, type[LakewardenError]] = {
    ObjectType.PROJECT: NoSuchProject,
    ObjectType.ROLE: NoSuchRole,
    ObjectType.TAG_DEFINITION: NoSuchTagDefinition,
    ObjectType.WAREHOUSE: NoSuchWarehouse,
    ObjectType.NAMESPACE: NoSuchNamespace,
    **{each.object_type: each.missing for each in TABULAR_TYPES.values()},
}
_GRANT_READERS = frozenset({Privilege.MANAGE_GRANTS, Privilege.ADMIN, Privilege.OPERATOR})
"""A caller with one of these on an object may ask what others may do on it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An object as a request names it: by `id`, or a namespace by `path`, a table or view by `path` and `name`.

    `warehouse` is the id of the warehouse of a namespace, table or view; an object of another warehouse is not found.
    """

    type: ObjectType
    id: str = ""
    warehouse: str = ""
    path: tuple[str, ...] = ()
    name: str = ""

    def missing(self) -> LakewardenError:
        """The error for an object that does not exist or that the caller may not see."""
        shown = ".".join((*self.path, *([self.name] if self.name else []))) or self.id
        return _MISSING[self.type](f"{word_of(self.type.value).capitalize()} does not exist: {shown}")


@dataclass(frozen=True, slots=True)
class Found:
    """An object that exists; `project` was read in the same query (None: the object is the server)."""

    chain: list[ObjectRef]
    project: Project | None


@dataclass(frozen=True, slots=True)
class NamedPrincipal:
    """A principal as a request names it: `user` is a user's id, `role` is a role's UUID."""

    user: PrincipalId | None = None
    role: str = ""


def allowed_actions(kind: ObjectType, held: frozenset[Privilege]) -> list[str]:
    """The names of all actions on an object of this type that the privileges `held` allow, sorted."""
    return sorted(action.value for action in ACTIONS[kind] if is_allowed(action, held))


def ensure_may_ask(held: frozenset[Privilege], kind: ObjectType) -> None:
    """Raises Forbidden if the caller's privileges `held` on an object do not allow reading its grants."""
    if held.isdisjoint(_GRANT_READERS):
        raise Forbidden(
            f"Not allowed: asking what others may do on this {kind.value} requires the right to read its grants "
            f"({' or '.join(sorted(_GRANT_READERS))})"
        )


class Rights:
    """Privileges, each looked up once for a request."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._own: dict[ObjectRef, frozenset[Privilege]] = {}
        self._others: dict[tuple[PrincipalId, ObjectRef], frozenset[Privilege]] = {}
        self._principals: dict[PrincipalId, Principal] = {}
        self._roles: dict[tuple[str, str | None], PrincipalId | NoSuchRole] = {}

    def held(self, asked: Asked, found: Found | None, identity: NamedPrincipal | None = None) -> frozenset[Privilege]:
        """All privileges on the object of the caller, or of `identity` if the request names one.

        Raises the object's NoSuch… error if it is missing or hidden, Forbidden if the caller may not ask about others,
        NoSuchRole for a role of another project than the object's. An unknown user holds nothing.
        """
        if found is None:
            raise asked.missing()
        own = self._held_by_caller(found)
        if asked.type is not ObjectType.SERVER and Privilege.SEE not in own:  # everybody knows that the server exists
            raise asked.missing()
        caller = self._context.caller
        if identity is None or (identity.user == caller.id and caller.assumed_role is None):
            return own
        ensure_may_ask(own, asked.type)
        principal = identity.user or self._role(identity.role, found.project)
        return self._held_by(principal, found)

    def _held_by_caller(self, found: Found) -> frozenset[Privilege]:
        target = found.chain[-1]
        if target not in self._own:
            self._own[target] = access.privileges(self._context, chain=found.chain, project=found.project)
        return self._own[target]

    def _held_by(self, principal: PrincipalId, found: Found) -> frozenset[Privilege]:
        key = (principal, found.chain[-1])
        if key not in self._others:
            if principal not in self._principals:
                self._principals[principal] = access.principal_of(principal)
            # without `access.privileges`, which would cache the result as the caller's
            self._others[key] = backends.authorizer().privileges(self._principals[principal], found.chain)
        return self._others[key]

    def _role(self, role_id: str, project: Project | None) -> PrincipalId:
        key = (role_id, project.id if project else None)
        if key not in self._roles:
            self._roles[key] = self._find_role(role_id, project)
        known = self._roles[key]
        if isinstance(known, NoSuchRole):
            raise known
        return known

    def _find_role(self, role_id: str, project: Project | None) -> PrincipalId | NoSuchRole:
        try:
            of_project = project.id if project else None
            role = access.role(self._context, role_id, RoleAction.READ_METADATA, project_id=of_project)
        except NoSuchRole as missing:
            return missing
        return role.target.principal


def find(asked: Collection[Asked]) -> dict[Asked, Found]:
    """Those of `asked` that exist, also if the caller may not see them; at most two queries for each type."""
    by_kind: dict[ObjectType, list[Asked]] = defaultdict(list)
    for each in asked:
        by_kind[each.type].append(each)
    return {each: found for kind, several in by_kind.items() for each, found in _FINDERS[kind](several)}


_Pairs = Iterator[tuple[Asked, Found]]


def _server(asked: list[Asked]) -> _Pairs:
    return ((each, Found([access.SERVER], None)) for each in asked)


def _projects(asked: list[Asked]) -> _Pairs:
    # only valid ids are looked up: the database refuses some characters
    known = Project.objects.in_bulk([each.id for each in asked if PROJECT_ID.fullmatch(each.id)])
    for each in asked:
        if each.id in known:
            yield each, Found(access.project_chain(each.id), known[each.id])


def _in_project(model: type[P], chain_of: Callable[[P], list[ObjectRef]]) -> Callable[[list[Asked]], _Pairs]:
    """Finds rows of a model that belong to a project, by their ids."""

    def find_rows(asked: list[Asked]) -> _Pairs:
        known = _of_ids(model._default_manager.select_related("project"), (each.id for each in asked))  # noqa: SLF001 Django's way to a model's manager
        for each in asked:
            row = known.get(_uuid(each.id))
            if row is not None:
                yield each, Found(chain_of(row), row.project)

    return find_rows


def _namespaces(asked: list[Asked]) -> _Pairs:
    for each, namespace in _namespace_rows(asked):
        yield each, Found(namespace_chain(namespace), namespace.warehouse.project)


def _namespace_rows(asked: list[Asked]) -> Iterator[tuple[Asked, Namespace]]:
    rows = Namespace.objects.placed()
    by_id = _of_ids(rows, (each.id for each in asked if not each.path))
    keys: dict[UUID, set[str]] = defaultdict(set)
    for each in asked:
        if (place := _place(each)) is not None:
            keys[place[0]].add(place[1])
    by_key = {
        (row.warehouse_id, row.path_key): row
        for row in _matching(rows, (Q(warehouse_id=key, path_key__in=paths) for key, paths in keys.items()))
    }
    for each in asked:
        place = _place(each)
        row = by_key.get(place) if place is not None else by_id.get(_uuid(each.id))
        if row is not None and row.warehouse_id == _uuid(each.warehouse):
            yield each, row


def _tabulars(asked: list[Asked]) -> _Pairs:
    rows = Tabular.objects.all()
    ids = {(_uuid(each.warehouse), _uuid(each.id)) for each in asked if not each.path}
    by_id: dict[tuple[UUID | None, UUID | None], Tabular] = {
        (row.warehouse_id, row.uuid): row for row in rows.placed().with_ids(ids)
    }
    above = dict(_namespace_rows([each for each in asked if each.path]))
    keys: dict[UUID, set[str]] = defaultdict(set)
    for each, namespace in above.items():
        if "\x00" not in each.name:
            keys[namespace.id].add(match_key(each.name))
    by_name = {
        (row.namespace_id, row.name_key): row
        for row in _matching(rows, (Q(namespace_id=key, name_key__in=names) for key, names in keys.items()))
    }
    for each in asked:
        if each in above:
            row = by_name.get((above[each].id, match_key(each.name)))
            if row is not None:
                row.namespace = above[each]
        else:
            row = by_id.get((_uuid(each.warehouse), _uuid(each.id))) if not each.path else None
        if row is not None and row.kind == each.type.value:
            yield each, Found(tabular_chain(row), row.namespace.warehouse.project)


def _matching(rows: models.QuerySet[M], conditions: Iterable[Q]) -> Iterable[M]:
    wanted = Q(pk__in=[])
    for condition in conditions:
        wanted |= condition
    return rows.filter(wanted)


def _of_ids(rows: models.QuerySet[M], names: Iterable[str]) -> dict[UUID | None, M]:
    """The rows by id; None stands for an invalid id and is never a key."""
    identifiers = {_uuid(name) for name in names} - {None}
    return {row.pk: row for row in rows.filter(pk__in=identifiers)} if identifiers else {}


def _place(asked: Asked) -> tuple[UUID, str] | None:
    """Warehouse id and path key of the namespace that `asked` names or is in; None if it cannot exist."""
    warehouse = _uuid(asked.warehouse)
    if warehouse is None or not asked.path or not can_be(asked.path):
        return None
    return warehouse, path_key(asked.path)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


_FINDERS: dict[ObjectType, Callable[[list[Asked]], Iterator[Any]]] = {
    ObjectType.SERVER: _server,
    ObjectType.PROJECT: _projects,
    ObjectType.ROLE: _in_project(Role, access.role_chain),
    ObjectType.TAG_DEFINITION: _in_project(TagDefinition, access.tag_chain),
    ObjectType.WAREHOUSE: _in_project(Warehouse, access.warehouse_chain),
    ObjectType.NAMESPACE: _namespaces,
    **{each.object_type: _tabulars for each in TABULAR_TYPES.values()},
}
