"""The ledger's rows: who holds which privilege on which object, and who is in which role."""

from django.db import models


class Grant(models.Model):
    principal_id = models.TextField()
    object_type = models.TextField()
    object_id = models.TextField()
    privilege = models.TextField()
    project_id = models.TextField(null=True)  # noqa: DJ001 no project for grants on the server
    granted_by = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "authz_grant"
        constraints = [
            models.UniqueConstraint(
                fields=["principal_id", "object_type", "object_id", "privilege"], name="authz_grant_unique"
            ),
        ]
        indexes = [models.Index(fields=["object_type", "object_id"], name="authz_grant_object")]

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
