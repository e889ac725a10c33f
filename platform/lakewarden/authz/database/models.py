"""Grants as rows: who holds which privilege on which object."""

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
