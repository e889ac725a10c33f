"""One row for each change and each refusal: who did what to which object, under which request."""

from django.db import models
from django.utils import timezone


class AuditEntry(models.Model):
    """`outcome` is `done` for a change, `denied` or `unauthenticated` for a refusal, whose sentence is `reason`.

    `project_id` is set only when the object was found in that project: a tenant is shown no other rows. Never changed
    once it is written, and found by time, so that it can be cut by day.
    """

    at = models.DateTimeField(default=timezone.now)
    actor = models.TextField()
    action = models.TextField()
    object_type = models.TextField()
    object_id = models.TextField()
    project_id = models.TextField(null=True)  # noqa: DJ001 the server's own entries have none
    outcome = models.TextField()
    reason = models.TextField(default="", db_default="")
    request_id = models.TextField()
    user_agent = models.TextField()
    details = models.JSONField(default=dict)

    class Meta:
        db_table = "audit_entry"
        indexes = [models.Index(fields=["project_id", "at"], name="audit_entry_project_at")]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.object_type} {self.object_id}"
