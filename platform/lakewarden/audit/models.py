"""One row for each change: who did what to which object, under which request."""

from django.db import models


class AuditEntry(models.Model):
    at = models.DateTimeField(auto_now_add=True)
    actor = models.TextField()
    action = models.TextField()
    object_type = models.TextField()
    object_id = models.TextField()
    project_id = models.TextField(null=True)  # noqa: DJ001 the server's own entries have none
    outcome = models.TextField()
    request_id = models.TextField()
    user_agent = models.TextField()
    details = models.JSONField(default=dict)

    class Meta:
        db_table = "audit_entry"
        indexes = [models.Index(fields=["project_id", "at"], name="audit_entry_project_at")]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.object_type} {self.object_id}"
