"""Generates the authorization model in OpenFGA's language from `authz/model.py`; its hash is its version.

`<privilege>_here` is what is granted or implied on the object itself; `<privilege>` adds what is inherited from the
parent. Implied privileges do not climb the chain a second time, so the cost of a check grows linearly with its depth.
No I/O; `store` writes the model and `authorizer` uses it.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from lakewarden.authz.actions import TABULAR_TYPES, ObjectType
from lakewarden.authz.model import GRANTABLE, INHERITED, Level, Privilege, effective

Json = dict[str, Any]

PARENT: Final = "parent"
ASSIGNEE: Final = "assignee"
MANAGED: Final = "managed"
MANAGED_ACCESS: Final = "managed_access"
"""The flag on an object itself; `managed` is true if it is set on the object or on any object above it."""

_T = ObjectType
PARENTS: Final[dict[ObjectType, tuple[ObjectType, ...]]] = {
    _T.SERVER: (),
    _T.PROJECT: (_T.SERVER,),
    _T.ROLE: (_T.PROJECT,),
    _T.TAG_DEFINITION: (_T.PROJECT,),
    _T.WAREHOUSE: (_T.PROJECT,),
    _T.NAMESPACE: (_T.WAREHOUSE, _T.NAMESPACE),
    **dict.fromkeys(TABULAR_TYPES, (_T.NAMESPACE,)),
}
_MANAGEABLE: Final = (_T.WAREHOUSE, _T.NAMESPACE, *TABULAR_TYPES)
_HOLDERS: Final = [{"type": "user"}, {"type": _T.ROLE.value, "relation": ASSIGNEE}]
_EVERY_USER: Final = [{"type": "user", "wildcard": {}}]
_THIS: Final[Json] = {"this": {}}


def here(privilege: Privilege) -> str:
    """The relation of grants on the object itself, including what they imply there."""
    return f"{privilege.value}_here"


@cache
def privileges_of(kind: ObjectType) -> tuple[Privilege, ...]:
    """All privileges that can be held on an object of this type, in any way."""
    return tuple(sorted(_implied(kind, {*GRANTABLE[kind], *INHERITED.get(kind, {}).values()})))


@cache
def assignable(kind: ObjectType) -> frozenset[str]:
    """The relations of this type that tuples are written to."""
    relations = {here(privilege) for privilege in GRANTABLE[kind]}
    if kind in _MANAGEABLE:
        relations.add(MANAGED_ACCESS)
    if kind is _T.ROLE:
        relations.add(ASSIGNEE)
    return frozenset(relations)


@cache
def authorization_model() -> Json:
    """The model as OpenFGA's API accepts it (schema 1.1)."""
    return {"schema_version": "1.1", "type_definitions": [{"type": "user"}, *map(_definition, ObjectType)]}


@cache
def model_hash() -> str:
    """SHA-256 of the model, in hexadecimal: versions of Lakewarden with the same model have the same hash."""
    return hashlib.sha256(json.dumps(authorization_model(), sort_keys=True).encode()).hexdigest()


def _definition(kind: ObjectType) -> Json:
    relations: dict[str, Json] = {}
    holders: dict[str, list[Json]] = {}
    if PARENTS[kind]:
        relations[PARENT], holders[PARENT] = _THIS, [{"type": parent.value} for parent in PARENTS[kind]]
    if kind is _T.ROLE:
        relations[ASSIGNEE], holders[ASSIGNEE] = _THIS, _HOLDERS
    if kind in _MANAGEABLE:
        relations[MANAGED_ACCESS], holders[MANAGED_ACCESS] = _THIS, _EVERY_USER
        above = [] if kind is _T.WAREHOUSE else [_from_parent(MANAGED)]
        relations[MANAGED] = _any([_same(MANAGED_ACCESS), *above])
    for privilege in privileges_of(kind):
        if privilege in GRANTABLE[kind]:
            holders[here(privilege)] = _HOLDERS
        direct = list(_here(kind, privilege))
        if direct:
            relations[here(privilege)] = _any(direct)
        inherited = [_from_parent(source.value) for source in _sources(kind, privilege)]
        relations[privilege.value] = _any([*([_same(here(privilege))] if direct else []), *inherited])
    metadata = {name: {"directly_related_user_types": types} for name, types in holders.items()}
    return {"type": kind.value, "relations": relations, "metadata": {"relations": metadata}}


def _here(kind: ObjectType, privilege: Privilege) -> Iterator[Json]:
    """The ways to hold a privilege by grants on the object itself."""
    if privilege in GRANTABLE[kind]:
        yield _THIS
    for stronger in _stronger(kind, privilege):
        implied = _same(here(stronger))
        if privilege in _implied(kind, {stronger}, managed=True):
            yield implied
        else:
            yield {"difference": {"base": implied, "subtract": _same(MANAGED)}}


def _stronger(kind: ObjectType, privilege: Privilege) -> list[Privilege]:
    """The privileges that imply this one in one step and can follow from a grant on the object itself."""
    granted = _implied(kind, GRANTABLE[kind])
    over = [other for other in granted if other != privilege and privilege in _implied(kind, {other})]
    steps = [other for other in over if not any(_between(kind, other, step, privilege) for step in over)]
    return sorted(steps)


def _between(kind: ObjectType, upper: Privilege, step: Privilege, lower: Privilege) -> bool:
    """Whether `upper` implies `lower` also through `step`; with managed access too, if it does so there at all."""
    if step in {upper, lower} or step not in _implied(kind, {upper}):
        return False
    weakly = _implied(kind, {upper}, managed=True)
    return lower not in weakly or (step in weakly and lower in _implied(kind, {step}, managed=True))


def _sources(kind: ObjectType, privilege: Privilege) -> list[Privilege]:
    """The privileges on the parent that give this one, without those that the parent's implications cover already."""
    passed = INHERITED.get(kind, {})
    # only the implications of ownership depend on managed access, and ownership is not inherited
    giving = {source for source, given in passed.items() if privilege in _implied(kind, {given}, managed=True)}
    return sorted(
        source
        for source in giving
        if not any(
            other != source and all(other in _implied(parent, {source}, managed=True) for parent in PARENTS[kind])
            for other in giving
        )
    )


def _implied(kind: ObjectType, granted: Iterable[Privilege], *, managed: bool = False) -> frozenset[Privilege]:
    """All privileges that follow from `granted` on the same object."""
    return effective([Level(kind, granted, managed=managed)])


def _same(relation: str) -> Json:
    return {"computedUserset": {"relation": relation}}


def _from_parent(relation: str) -> Json:
    return {"tupleToUserset": {"tupleset": {"relation": PARENT}, "computedUserset": {"relation": relation}}}


def _any(ways: list[Json]) -> Json:
    return ways[0] if len(ways) == 1 else {"union": {"child": ways}}
