"""The ledger's rows: who holds which privilege on which object, who is in which role, and what OpenFGA has to hear."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

EVERYBODY = "*"
"""The holder of flags, which are of nobody in particular."""

MANAGED_ACCESS = "managed_access"
"""A flag of warehouses and namespaces: in them owners do not grant."""


class Grant(models.Model):
    principal_id = models.TextField()
    object_type = models.TextField()
    object_id = models.TextField()
    privilege = models.TextField()
    project_id = models.TextField(null=True)  # noqa: DJ001 no project for grants on the server
    ancestors = ArrayField(models.TextField(), default=list, help_text="Ids of what the object lies in, project first.")
    granted_by = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "authz_grant"
        constraints = [
            models.UniqueConstraint(
                fields=["principal_id", "object_type", "object_id", "privilege"], name="authz_grant_unique"
            ),
        ]
        indexes = [
            models.Index(fields=["object_type", "object_id"], name="authz_grant_object"),
            models.Index(fields=["project_id", "object_type"], name="authz_grant_project"),
            models.Index(
                fields=["principal_id", "ancestors", "object_type"],
                include=["object_id", "privilege"],
                name="authz_grant_within",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.principal_id} {self.privilege} on {self.object_type} {self.object_id}"


class Membership(models.Model):
    """An edge of the graph of roles: `member_id` (a user, or a role of the same project) is in `role_id`."""

    role_id = models.TextField()
    member_id = models.TextField()
    project_id = models.TextField()
    added_by = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "authz_membership"
        constraints = [models.UniqueConstraint(fields=["member_id", "role_id"], name="authz_membership_unique")]
        indexes = [models.Index(fields=["role_id", "member_id"], name="authz_membership_role")]

    def __str__(self) -> str:
        return f"{self.member_id} in {self.role_id}"


class Change(models.Model):
    """A change of the ledger that the authorizer has not applied yet, in the ledger's words; see `change_log`."""

    sequence = models.BigAutoField(primary_key=True)
    operation = models.TextField(choices=[("write", "write"), ("delete", "delete")])
    principal_id = models.TextField()
    relation = models.TextField()
    object_type = models.TextField()
    object_id = models.TextField()

    class Meta:
        db_table = "authz_change"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(operation__in=["write", "delete"]), name="authz_change_operation_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.principal_id} {self.relation} on {self.object_type} {self.object_id}"


class OpenFgaStore(models.Model):
    """Where OpenFGA keeps the rights, and the version of the model there; written by `lakewarden migrate`."""

    name = models.TextField(primary_key=True)
    store_id = models.TextField()
    model_id = models.TextField()
    model_hash = models.TextField()
    filled_at = models.DateTimeField(
        null=True, help_text="Since when it has everything that the ledger has; none: `openfga reconcile` must run."
    )

    class Meta:
        db_table = "openfga_store"

    def __str__(self) -> str:
        return f"{self.name}: store {self.store_id}, model {self.model_id}"
