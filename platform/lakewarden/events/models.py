"""Events on their way: the outbox of each change's transaction, the log in the order of commits, and the sinks."""

from django.db import models


class OutboxEvent(models.Model):
    """An event as its change's transaction wrote it, until `log.append_new` moves it to the log."""

    sequence = models.BigAutoField(primary_key=True)
    id = models.UUIDField(unique=True)
    type = models.TextField()
    project_id = models.TextField(null=True)  # noqa: DJ001 the server's own events have none
    object_type = models.TextField()
    object_id = models.TextField()
    actor = models.TextField()
    assumed_role = models.TextField(default="", db_default="")
    request_id = models.TextField()
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "outbox_event"

    def __str__(self) -> str:
        return f"{self.type} {self.object_type} {self.object_id}"


class LoggedEvent(models.Model):
    """Partitioned by the day (UTC) of `at`, the time of logging, which is part of the primary key in the database."""

    position = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    id = models.UUIDField()
    type = models.TextField()
    project_id = models.TextField(null=True)  # noqa: DJ001 as above
    object_type = models.TextField()
    object_id = models.TextField()
    actor = models.TextField()
    assumed_role = models.TextField()
    request_id = models.TextField()
    data = models.JSONField()
    created_at = models.DateTimeField(help_text="The time of the change.")

    class Meta:
        db_table = "event_log"

    def __str__(self) -> str:
        return f"{self.position} {self.type} {self.object_type} {self.object_id}"


class EventSink(models.Model):
    """A sink of events and its progress. Events that it has not received are kept while a relay still serves it."""

    name = models.TextField(primary_key=True)
    delivered = models.BigIntegerField(default=0, help_text="The position up to which all events were delivered.")
    leased_by = models.TextField(default="", db_default="")
    leased_until = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    failure = models.TextField(default="", db_default="", help_text="Why the last attempt failed; empty: it did not.")
    failing_since = models.DateTimeField(null=True)
    sent = models.BigIntegerField(default=0, db_default=0, help_text="How many events were sent, in all.")
    recently_sent = models.BigIntegerField(default=0, db_default=0, help_text="How many since `recent_since`.")
    recent_since = models.DateTimeField(null=True, help_text="At most about a minute ago while events are sent.")

    class Meta:
        db_table = "event_sink"

    def __str__(self) -> str:
        return f"{self.name} up to {self.delivered}"


class DeadLetter(models.Model):
    """An event that a sink will never take; it can be looked at and sent again."""

    id = models.BigAutoField(primary_key=True)
    sink = models.TextField()
    position = models.BigIntegerField()
    event_id = models.UUIDField()
    event = models.JSONField(help_text="As it would have been delivered (CloudEvents 1.0).")
    reason = models.TextField()
    at = models.DateTimeField(help_text="The time of the last attempt.")
    first_at = models.DateTimeField(null=True, help_text="The time of the first attempt; null: there was only one.")
    attempts = models.IntegerField(default=1, db_default=1)
    again = models.BooleanField(default=False, db_default=False, help_text="Whether a worker will send it once more.")

    class Meta:
        db_table = "event_dead_letter"
        constraints = [models.UniqueConstraint(fields=["sink", "position"], name="event_dead_letter_once")]

    def __str__(self) -> str:
        return f"{self.sink} {self.position}: {self.reason}"
