"""A role of a project: a name for many principals. Its members are stored by `lakewarden.authz.ledger`."""

from typing import Final

from django.db import models

from lakewarden.context import PrincipalId, role_principal
from tenants.models.project import Project

HELD: Final = "select '{}'::uuid[] from role where id = %s::text::uuid for key share"
"""Keeps one from being deleted until the transaction ends; there are no namespaces above it."""
HELD_OF_PROJECT: Final = (
    "select id from role where project_id = %s and id = any(%s::text[]::uuid[]) order by id for key share"
)
OWN_PROVIDER = "lakekeeper"
"""The provider id of roles that are not bound to a group of an identity provider, as clients of this API expect it."""


class Role(models.Model):
    """`provider_id` and `source_id` name the identity provider and its group that the role is bound to."""

    id = models.UUIDField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    name = models.TextField()
    name_key = models.TextField()
    description = models.TextField(null=True)  # noqa: DJ001 the API tells unknown from empty
    provider_id = models.TextField(default=OWN_PROVIDER)
    source_id = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "role"
        constraints = [
            models.UniqueConstraint(fields=["project", "name_key"], name="role_name_unique"),
            models.UniqueConstraint(fields=["project", "provider_id", "source_id"], name="role_source_unique"),
        ]
        indexes = [models.Index(fields=["provider_id", "source_id"], name="role_source")]

    def __str__(self) -> str:
        return self.name

    @property
    def ident(self) -> str:
        return f"{self.provider_id}~{self.source_id}"

    @property
    def principal(self) -> PrincipalId:
        return role_principal(self.id)
