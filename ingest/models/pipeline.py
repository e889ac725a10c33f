"""What the pipeline says of itself, per warehouse; the gateway only reads it."""

from django.db import models

from tenants.models import Warehouse


class IngestPipeline(models.Model):
    """The database removes the row with its warehouse."""

    class State(models.TextChoices):
        IDLE = "idle"
        FLUSHING = "flushing"
        RECOVERING = "recovering"
        ERROR = "error"

    warehouse = models.OneToOneField(Warehouse, on_delete=models.DO_NOTHING, primary_key=True, db_constraint=False)
    instance = models.TextField()
    heartbeat_at = models.DateTimeField()
    state = models.TextField(choices=State.choices)
    error = models.TextField(default="", db_default="")
    last_flush_at = models.DateTimeField(null=True)
    last_flush = models.JSONField(null=True, help_text="The members of the answer to a flush.")
    freshness = models.JSONField(
        default=dict, help_text="Milliseconds from an event's timestamp to the snapshot that shows it."
    )

    class Meta:
        db_table = "ingest_pipeline"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["idle", "flushing", "recovering", "error"]),
                name="ingest_pipeline_state_known",
            )
        ]

    def __str__(self) -> str:
        return f"{self.warehouse_id}: {self.state}"
