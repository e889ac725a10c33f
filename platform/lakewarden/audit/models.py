"""One row for each change, each decision and each refusal: who did what to which object, under which request."""

from django.db import models
from django.utils import timezone


class AuditEntry(models.Model):
    """`outcome` is `done` for a change, `allowed` or `denied` for a decision, `unauthenticated` for bad credentials.

    `lost` says that `count` decisions are in no row. `count` is more than one for equal decisions that were written
    together, the first `at` and the last `last_at`; request id and user agent are then the first one's. `reason` is
    the sentence of a refusal.

    `project_id` is set only when the object was found in that project: a tenant is shown no other rows. Rows never
    change. The table is partitioned by day (UTC) of `at`, which is part of its primary key (see `partitions`).
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
