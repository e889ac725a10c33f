"""The outbox: events are stored here until they are delivered; events of one object are in the order of its changes."""

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


class EventSink(models.Model):
    """An enabled sink of events and its progress: events that it has not received are kept, however old they are."""

    name = models.TextField(primary_key=True)
    delivered = models.BigIntegerField(default=0, help_text="The sequence up to which all events were delivered.")

    class Meta:
        db_table = "event_sink"

    def __str__(self) -> str:
        return f"{self.name} up to {self.delivered}"
