"""Writes and reads grants.

Every function that changes what a principal may do raises the project's epoch itself, so no caller can forget it.
Only the creator's grant on a new object does not: no decision about that object can be cached yet.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lakewarden.authz.actions import TABULAR_TYPES, ObjectType
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.ledger import change_log, epochs
from lakewarden.authz.ledger.models import EVERYBODY, MANAGED_ACCESS, Grant
from lakewarden.authz.model import Privilege
from lakewarden.context import Caller, PrincipalId
from lakewarden.prepared_statements import execute, fetch


@dataclass(frozen=True, slots=True)
class Given:
    """A direct grant as it is listed; `above` are the ids of the objects above `ref`, the project first."""

    principal: PrincipalId
    privilege: Privilege
    ref: ObjectRef
    above: tuple[str, ...]
    at: datetime


def given_on(ref: ObjectRef) -> list[Given]:
    """All grants on this object (not those above it), sorted by principal and privilege."""
    rows = Grant.objects.filter(object_type=ref.type.value, object_id=ref.id).exclude(principal_id=EVERYBODY)
    return [_given(row) for row in rows.order_by("principal_id", "privilege")]


def given_to(principal: PrincipalId, *, project_id: str) -> list[Given]:
    """All direct grants to a principal in a project, sorted by object and privilege."""
    rows = Grant.objects.filter(principal_id=principal, project_id=project_id)
    return [_given(row) for row in rows.order_by("object_type", "object_id", "privilege")]


def _given(row: Grant) -> Given:
    return Given(
        PrincipalId(row.principal_id),
        Privilege(row.privilege),
        ObjectRef(ObjectType(row.object_type), row.object_id),
        tuple(row.ancestors),
        row.created_at,
    )


def on(ref: ObjectRef) -> list[tuple[PrincipalId, Privilege]]:
    """Principal and privilege of `given_on`."""
    return [(each.principal, each.privilege) for each in given_on(ref)]


def give(
    chain: Sequence[ObjectRef], grants: Iterable[tuple[PrincipalId, Privilege]], *, granted_by: PrincipalId
) -> int:
    """Add grants on the last object of `chain` (server first); returns how many were new."""
    entries = [(principal, privilege.value) for principal, privilege in grants]
    if not entries:
        return 0
    epochs.raise_in([_project_of(chain)])
    return _add(chain, entries, granted_by=granted_by)


def owners_of(tabular_ids: Sequence[str]) -> list[tuple[UUID, PrincipalId]]:
    """The owners of the tables, views and generic tables with these ids, one entry for each pair."""
    rows = Grant.objects.filter(object_type__in=TABULAR_TYPES, object_id__in=tabular_ids, privilege=Privilege.OWNERSHIP)
    return [(UUID(row.object_id), PrincipalId(row.principal_id)) for row in rows]


def give_creator(
    chain: Sequence[ObjectRef],
    creator: Caller,
    privilege: Privilege = Privilege.OWNERSHIP,
    *,
    to: Iterable[PrincipalId] | None = None,
) -> None:
    """Add the first grant on an object that the open transaction creates; the epoch need not be raised for it.

    `to`: the principals who get it instead of the creator.
    """
    holders = [creator.owner] if to is None else to
    _add(chain, [(holder, privilege.value) for holder in holders], granted_by=creator.id)


def remove(ref: ObjectRef, grants: Iterable[tuple[PrincipalId, Privilege]]) -> int:
    """Remove grants; returns how many existed."""
    return _remove(ref, [(principal, privilege.value) for principal, privilege in grants])


def set_managed(chain: Sequence[ObjectRef], *, managed: bool, set_by: PrincipalId) -> bool:
    """Set or remove managed access on the last object of `chain`; returns whether that changed anything."""
    flag = [(EVERYBODY, MANAGED_ACCESS)]
    epochs.raise_in([_project_of(chain)])
    changed = _add(chain, flag, granted_by=set_by) if managed else _remove(chain[-1], flag)
    return changed > 0


def is_managed(chain: Sequence[ObjectRef]) -> tuple[bool, bool]:
    """Whether managed access is set on the last object of `chain`, and whether it is set on any object above it."""
    found = Grant.objects.filter(principal_id=EVERYBODY, privilege=MANAGED_ACCESS, object_id__in=[r.id for r in chain])
    flagged = {(row.object_type, row.object_id) for row in found}
    own, *above = [(ref.type.value, ref.id) in flagged for ref in reversed(chain)]
    return own, any(above)


def reparent(ref: ObjectRef, *, before: Sequence[ObjectRef], after: Sequence[ObjectRef]) -> None:
    """Update grants on `ref` and everything inside it after a move from `before` to `after` (chains, server first)."""
    old, new = [each.id for each in before[1:]], [each.id for each in after[1:]]
    epochs.raise_in([old[0]])
    execute(_REPARENT, {"new": new, "kept": len(old) + 1, "type": ref.type.value, "id": ref.id, "project": old[0]})


def pass_on(ref: ObjectRef, to: Sequence[ObjectRef]) -> None:
    """Move all grants on `ref` to the last object of `to`, which the open transaction creates to replace it."""
    for row in Grant.objects.filter(object_type=ref.type.value, object_id=ref.id):
        _add(to, [(row.principal_id, row.privilege)], granted_by=PrincipalId(row.granted_by))
    forget_object(ref)


def forget_object(ref: ObjectRef) -> None:
    """Remove all grants on a deleted object. Call it last in a transaction: it locks the project's row."""
    forget_objects(ref.type, [ref.id])


def forget_objects(kind: ObjectType, ids: Sequence[str]) -> None:
    """Like `forget_object`, for many objects of one type."""
    _take_away(_ON_OBJECTS, {"type": kind.value, "ids": list(ids)})


def forget_principal(principal: PrincipalId) -> None:
    """Remove all grants to a deleted user or role."""
    _take_away("principal_id = %(principal)s", {"principal": principal})


def forget_project(project_id: str) -> None:
    """Remove all grants on a deleted project and on everything inside it."""
    _take_away("project_id = %(project)s", {"project": project_id})


def projects_of(principals: Iterable[PrincipalId]) -> set[str]:
    """The projects in which one of the principals, or one of their roles, has a grant."""
    return {project_id for (project_id,) in fetch(_PROJECTS, [list(principals)])}


def _add(chain: Sequence[ObjectRef], entries: Sequence[tuple[str, str]], *, granted_by: PrincipalId) -> int:
    _, *between = (ref.id for ref in chain)
    parameters = {
        "type": chain[-1].type.value,
        "id": chain[-1].id,
        "project": between[0] if between else None,
        "ancestors": between[:-1],
        "by": granted_by,
    }
    return len(_change(_ADD, {**parameters, **_columns(entries)}))


def _remove(ref: ObjectRef, entries: Sequence[tuple[str, str]]) -> int:
    return _take_away(_NAMED, {"type": ref.type.value, "id": ref.id, **_columns(entries)})


def _take_away(condition: str, parameters: Mapping[str, object]) -> int:
    """Remove the matching rows; returns how many.

    The epochs are raised first, because the project's row is locked before its grants; and once more for rows of other
    projects that were added between the two statements.
    """
    raised = epochs.raise_where("authz_grant", condition, parameters)
    gone = _change(_TAKE_AWAY.format(condition=condition), parameters)
    epochs.raise_in({project_id for (project_id,) in gone} - raised)
    return len(gone)


def _project_of(chain: Sequence[ObjectRef]) -> str | None:
    return chain[1].id if len(chain) > 1 else None


def _columns(entries: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    return {
        "principals": [principal for principal, _ in entries],
        "privileges": [privilege for _, privilege in entries],
    }


def _change(statement: str, parameters: Mapping[str, object]) -> list[tuple[str | None]]:
    """Run the statement and log the change; returns one row, with the project, for each grant added or removed."""
    changed = fetch(statement, {**parameters, "logged": change_log.are_logged()})
    if changed:
        change_log.announce()
    return changed


GIVEN = f"""
    given as (
        insert into authz_grant
            (object_type, object_id, project_id, ancestors, granted_by, principal_id, privilege, created_at)
        select object_type, object_id, project_id, ancestors, granted_by, principal_id, privilege, now() from to_give
        on conflict do nothing returning *
    ), logged as ({change_log.of_grants("write", "given")})
"""  # noqa: S608 text of our own
"""SQL for a statement that creates objects: members of its `with` that give the rows of `to_give`, a member before.

It is executed with `logged`, and `change_log.announce` or `tell` follows it.
"""
_ADD = f"""
    with to_give as (
        select %(type)s::text as object_type, %(id)s::text as object_id, %(project)s::text as project_id,
            %(ancestors)s::text[] as ancestors, %(by)s::text as granted_by, principal as principal_id, privilege
        from unnest(%(principals)s::text[], %(privileges)s::text[]) as g(principal, privilege)
    ), {GIVEN}
    select project_id from given
"""  # noqa: S608 text of our own
_NAMED = """
    object_type = %(type)s and object_id = %(id)s
    and (principal_id, privilege) in (select * from unnest(%(principals)s::text[], %(privileges)s::text[]))
"""
_ON_OBJECTS = "object_type = %(type)s and object_id = any(%(ids)s::text[])"
_TAKE_AWAY = f"""
    with gone as (
        delete from authz_grant where {{condition}} returning *
    ), logged as ({change_log.of_grants("delete", "gone")})
    select project_id from gone
"""  # noqa: S608 text of our own
# `kept` is the index in `ancestors` behind the old parents: what follows, from the moved object on, stays as it is
_REPARENT = """
    update authz_grant set ancestors = %(new)s::text[] || ancestors[%(kept)s:]
    where (object_type = %(type)s and object_id = %(id)s) or (project_id = %(project)s and %(id)s = any(ancestors))
"""
_PROJECTS = """
    with recursive principal(id) as (
        select unnest(%s::text[])
        union
        select m.role_id from authz_membership m join principal s on m.member_id = s.id
    )
    select distinct g.project_id from principal s join authz_grant g on g.principal_id = s.id
    where g.project_id is not null
"""
