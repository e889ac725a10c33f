"""The default authorizer: grants in our own Postgres, read in one query per decision."""

from collections.abc import Iterable, Sequence

from lakewarden.authz.database.models import Grant
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.prepared import execute, fetch


class DatabaseAuthorizer:
    def privileges(self, principal: PrincipalId, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:
        types, ids = [ref.type.value for ref in chain], [ref.id for ref in chain]
        return frozenset(Privilege(name) for (name,) in fetch(_HELD, [types, ids, principal]))

    def grants_on(self, ref: ObjectRef) -> list[tuple[PrincipalId, Privilege]]:
        rows = Grant.objects.filter(object_type=ref.type.value, object_id=ref.id).order_by("principal_id", "privilege")
        return [(PrincipalId(row.principal_id), Privilege(row.privilege)) for row in rows]

    def add_grants(
        self,
        ref: ObjectRef,
        grants: Iterable[tuple[PrincipalId, Privilege]],
        *,
        project_id: str | None,
        granted_by: PrincipalId,
    ) -> None:
        """Add what is missing; the caller's transaction also bumps the project's authorization epoch."""
        entries = list(grants)
        principals, privileges = [principal for principal, _ in entries], [privilege.value for _, privilege in entries]
        execute(_ADD, [ref.type.value, ref.id, project_id, granted_by, principals, privileges])

    def remove_grants(self, ref: ObjectRef, grants: Iterable[tuple[PrincipalId, Privilege]]) -> None:
        for principal, privilege in grants:
            Grant.objects.filter(
                principal_id=principal, object_type=ref.type.value, object_id=ref.id, privilege=privilege.value
            ).delete()

    def remove_object(self, ref: ObjectRef) -> None:
        Grant.objects.filter(object_type=ref.type.value, object_id=ref.id).delete()


_HELD = """
    select g.privilege from unnest(%s::text[], %s::text[]) as c(type, id)
    join authz_grant g on g.principal_id = %s and g.object_type = c.type and g.object_id = c.id
"""
_ADD = """
    insert into authz_grant (object_type, object_id, project_id, granted_by, principal_id, privilege, created_at)
    select %s, %s, %s, %s, principal, privilege, now() from unnest(%s::text[], %s::text[]) as g(principal, privilege)
    on conflict do nothing
"""
