"""Writes and reads what is granted; the caller's transaction also bumps the project's authorization epoch."""

from collections.abc import Iterable, Sequence

from django.db.models import Q

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.ledger.models import EVERYBODY, MANAGED_ACCESS, Grant
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.prepared import execute, fetch


def on(ref: ObjectRef) -> list[tuple[PrincipalId, Privilege]]:
    """Everything granted on this very object, by principal and privilege."""
    rows = Grant.objects.filter(object_type=ref.type.value, object_id=ref.id).exclude(principal_id=EVERYBODY)
    return [
        (PrincipalId(row.principal_id), Privilege(row.privilege)) for row in rows.order_by("principal_id", "privilege")
    ]


def give(
    chain: Sequence[ObjectRef], grants: Iterable[tuple[PrincipalId, Privilege]], *, granted_by: PrincipalId
) -> None:
    """Add what is missing on the last of `chain`, which begins at the server."""
    entries = list(grants)
    principals, privileges = [principal for principal, _ in entries], [privilege.value for _, privilege in entries]
    _, *between = (ref.id for ref in chain)
    ref, project_id = chain[-1], between[0] if between else None
    execute(_ADD, [ref.type.value, ref.id, project_id, between[:-1], granted_by, principals, privileges])


def remove(ref: ObjectRef, grants: Iterable[tuple[PrincipalId, Privilege]]) -> None:
    """Remove what is there."""
    wanted = Q(pk__in=[])
    for principal, privilege in grants:
        wanted |= Q(principal_id=principal, privilege=privilege.value)
    Grant.objects.filter(wanted, object_type=ref.type.value, object_id=ref.id).delete()


def add(
    ref: ObjectRef,
    grants: Iterable[tuple[PrincipalId, Privilege]],
    *,
    project_id: str | None,
    granted_by: PrincipalId,
) -> None:
    """Going away: use `give`."""
    chain = [ObjectRef(ObjectType.SERVER, "server"), ObjectRef(ObjectType.PROJECT, project_id or ""), ref]
    give(chain if project_id else chain[:1], grants, granted_by=granted_by)


def set_managed(chain: Sequence[ObjectRef], *, managed: bool, set_by: PrincipalId) -> bool:
    """Set or lift the flag of managed access on the last of `chain`; returns whether that changed anything."""
    ref = chain[-1]
    flag = Grant.objects.filter(
        object_type=ref.type.value, object_id=ref.id, principal_id=EVERYBODY, privilege=MANAGED_ACCESS
    )
    if flag.exists() == managed:
        return False
    if managed:
        between = [each.id for each in chain[1:]]
        flag.create(
            object_type=ref.type.value,
            object_id=ref.id,
            principal_id=EVERYBODY,
            privilege=MANAGED_ACCESS,
            project_id=between[0],
            ancestors=between[:-1],
            granted_by=set_by,
        )
    else:
        flag.delete()
    return True


def is_managed(chain: Sequence[ObjectRef]) -> tuple[bool, bool]:
    """Whether the flag is set on the last of `chain`, and whether it is set on anything above it."""
    found = Grant.objects.filter(principal_id=EVERYBODY, privilege=MANAGED_ACCESS, object_id__in=[r.id for r in chain])
    flagged = {(row.object_type, row.object_id) for row in found}
    own, *above = [(ref.type.value, ref.id) in flagged for ref in reversed(chain)]
    return own, any(above)


def reparent(ref: ObjectRef, *, before: Sequence[ObjectRef], after: Sequence[ObjectRef]) -> None:
    """Say that `ref`, which lay in `before` (server first), lies in `after` now, with all that is in it."""
    old, new = [each.id for each in before[1:]], [each.id for each in after[1:]]
    execute(_REPARENT, {"new": new, "kept": len(old) + 1, "type": ref.type.value, "id": ref.id, "project": old[0]})


def forget_object(ref: ObjectRef) -> None:
    """Remove everything granted on an object that is gone."""
    execute("delete from authz_grant where object_type = %s and object_id = %s", [ref.type.value, ref.id])


def forget_principal(principal: PrincipalId) -> set[str | None]:
    """Remove everything granted to a user or role that is gone; returns the projects it was in (None: the server)."""
    rows = fetch("delete from authz_grant where principal_id = %s returning project_id", [principal])
    return {project_id for (project_id,) in rows}


def projects_of(principals: Iterable[PrincipalId]) -> set[str]:
    """The projects in which anything is granted to one of the principals, or to a role that one of them is in."""
    return {project_id for (project_id,) in fetch(_PROJECTS, [list(principals)])}


_ADD = """
    insert into authz_grant
        (object_type, object_id, project_id, ancestors, granted_by, principal_id, privilege, created_at)
    select %s, %s, %s, %s::text[], %s, principal, privilege, now()
    from unnest(%s::text[], %s::text[]) as g(principal, privilege)
    on conflict do nothing
"""
# 1 + the old depth is where the part of `ancestors` begins that moves along (the object itself, for what lies in it)
_REPARENT = """
    update authz_grant set ancestors = %(new)s::text[] || ancestors[%(kept)s:]
    where (object_type = %(type)s and object_id = %(id)s) or (project_id = %(project)s and %(id)s = any(ancestors))
"""
_PROJECTS = """
    with recursive subject(id) as (
        select unnest(%s::text[])
        union
        select m.role_id from authz_membership m join subject s on m.member_id = s.id
    )
    select distinct g.project_id from subject s join authz_grant g on g.principal_id = s.id
    where g.project_id is not null
"""
