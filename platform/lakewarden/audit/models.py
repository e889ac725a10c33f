"""The audit: one row for each change, decision and refusal, with actor, action, object and request."""

from django.db import models
from django.utils import timezone


class AuditEntry(models.Model):
    """`outcome` is `done` for a change, `allowed` or `denied` for a decision, `unauthenticated` for invalid
    credentials.

    `lost` means that `count` decisions have no row. Equal decisions are written together: `count` is their number, `at`
    and `last_at` are the times of the first and the last, request id and user agent are those of the first. `reason` is
    the message of a refusal.

    `project_id` is set only if the object was found in that project, because it decides which rows a project sees. Rows
    never change. The table is partitioned by the day (UTC) of `at`, which is part of the primary key (see
    `partitions`).
    """

    class Outcome(models.TextChoices):
        DONE = "done"
        ALLOWED = "allowed"
        DENIED = "denied"
        UNAUTHENTICATED = "unauthenticated"
        LOST = "lost"

    at = models.DateTimeField(default=timezone.now)
    actor = models.TextField()
    assumed_role = models.TextField(default="", db_default="")
    action = models.TextField()
    object_type = models.TextField()
    object_id = models.TextField()
    project_id = models.TextField(null=True)  # noqa: DJ001 the server's own entries have none
    outcome = models.TextField()
    reason = models.TextField(default="", db_default="")
    request_id = models.TextField()
    user_agent = models.TextField()
    count = models.IntegerField(default=1, db_default=1)
    last_at = models.DateTimeField(null=True)
    details = models.JSONField(default=dict)

    class Meta:
        db_table = "audit_entry"
        indexes = [
            models.Index(fields=["project_id", "-at", "-id"], name="audit_entry_by_project"),
            models.Index(fields=["object_id", "-at", "-id"], name="audit_entry_by_object"),
            models.Index(fields=["actor", "-at", "-id"], name="audit_entry_by_actor"),
            models.Index(fields=["request_id"], name="audit_entry_by_request"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.object_type} {self.object_id}"
