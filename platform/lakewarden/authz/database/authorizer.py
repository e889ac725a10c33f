"""The default authorizer: grants in our own Postgres, read in one query per decision."""

from collections.abc import Iterable, Sequence

from django.db.models import Q

from lakewarden.authz.database.models import Grant
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId


class DatabaseAuthorizer:
    def privileges(self, principal: PrincipalId, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:
        on_chain = Q()
        for ref in chain:
            on_chain |= Q(object_type=ref.type.value, object_id=ref.id)
        held = Grant.objects.filter(on_chain, principal_id=principal).values_list("privilege", flat=True)
        return frozenset(Privilege(name) for name in held)

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
        Grant.objects.bulk_create(
            [
                Grant(
                    principal_id=principal,
                    object_type=ref.type.value,
                    object_id=ref.id,
                    privilege=privilege.value,
                    project_id=project_id,
                    granted_by=granted_by,
                )
                for principal, privilege in grants
            ],
            ignore_conflicts=True,
        )

    def remove_grants(self, ref: ObjectRef, grants: Iterable[tuple[PrincipalId, Privilege]]) -> None:
        for principal, privilege in grants:
            Grant.objects.filter(
                principal_id=principal, object_type=ref.type.value, object_id=ref.id, privilege=privilege.value
            ).delete()

    def remove_object(self, ref: ObjectRef) -> None:
        Grant.objects.filter(object_type=ref.type.value, object_id=ref.id).delete()
