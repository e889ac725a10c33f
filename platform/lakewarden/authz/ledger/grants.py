"""Writes and reads what is granted; the caller's transaction also bumps the project's authorization epoch."""

from collections.abc import Iterable

from django.db.models import Q

from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.ledger.models import Grant
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.prepared import execute, fetch


def on(ref: ObjectRef) -> list[tuple[PrincipalId, Privilege]]:
    """Everything granted on this very object, by principal and privilege."""
    rows = Grant.objects.filter(object_type=ref.type.value, object_id=ref.id).order_by("principal_id", "privilege")
    return [(PrincipalId(row.principal_id), Privilege(row.privilege)) for row in rows]


def add(
    ref: ObjectRef,
    grants: Iterable[tuple[PrincipalId, Privilege]],
    *,
    project_id: str | None,
    granted_by: PrincipalId,
) -> None:
    """Add what is missing."""
    entries = list(grants)
    principals, privileges = [principal for principal, _ in entries], [privilege.value for _, privilege in entries]
    execute(_ADD, [ref.type.value, ref.id, project_id, granted_by, principals, privileges])


def remove(ref: ObjectRef, grants: Iterable[tuple[PrincipalId, Privilege]]) -> None:
    """Remove what is there."""
    wanted = Q(pk__in=[])
    for principal, privilege in grants:
        wanted |= Q(principal_id=principal, privilege=privilege.value)
    Grant.objects.filter(wanted, object_type=ref.type.value, object_id=ref.id).delete()


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
    insert into authz_grant (object_type, object_id, project_id, granted_by, principal_id, privilege, created_at)
    select %s, %s, %s, %s, principal, privilege, now() from unnest(%s::text[], %s::text[]) as g(principal, privilege)
    on conflict do nothing
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
