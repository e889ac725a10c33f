"""The models of the ledger: grants, memberships of roles, and changes that are not applied to OpenFGA yet."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

EVERYBODY = "*"
"""The principal of flags, such as managed access, which are stored as grants to nobody in particular."""

MANAGED_ACCESS = "managed_access"
"""A flag of warehouses and namespaces: owners of objects inside them may not grant privileges."""


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
    """`member_id` (a user, or a role of the same project) is a direct member of `role_id`."""

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
    """A change of the ledger that is not applied to OpenFGA yet; see `change_log`."""

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
    """The store in OpenFGA and the version of the model in it; written by `lakewarden migrate`."""

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
