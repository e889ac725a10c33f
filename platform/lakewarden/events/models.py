"""The outbox: events wait here, in the order of their transactions per object, until a relay has delivered them."""

from django.db import models


class OutboxEvent(models.Model):
    sequence = models.BigAutoField(primary_key=True)
    id = models.UUIDField(unique=True)
    type = models.TextField()
    project_id = models.TextField(null=True)  # noqa: DJ001 the server's own events have none
    object_type = models.TextField()
    object_id = models.TextField()
    actor = models.TextField()
    request_id = models.TextField()
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "outbox_event"

    def __str__(self) -> str:
        return f"{self.type} {self.object_type} {self.object_id}"
