"""What the gateway asks of the pipeline: everything up to a position in snapshots, now."""

from django.db import models

from tenants.models import Warehouse


class IngestFlushRequest(models.Model):
    """The gateway inserts it and notifies the channel `ingest_flush`; the pipeline answers in the row.

    The database removes the row with its warehouse.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        DONE = "done"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True)
    warehouse = models.ForeignKey(Warehouse, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    requested_at = models.DateTimeField()
    requested_by = models.TextField()
    upto_position = models.BigIntegerField()
    state = models.TextField(choices=State.choices, default=State.PENDING, db_default=State.PENDING)
    result = models.JSONField(null=True, help_text="The members of the answer to a flush, or `error`.")

    class Meta:
        db_table = "ingest_flush_request"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["pending", "done", "failed"]), name="ingest_flush_request_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(state="pending", result__isnull=True)
                | models.Q(state__in=["done", "failed"], result__isnull=False),
                name="ingest_flush_request_has_result",
            ),
        ]
        indexes = [models.Index(fields=["warehouse", "state"], name="ingest_flush_request_pending")]

    def __str__(self) -> str:
        return f"{self.warehouse_id} up to {self.upto_position}: {self.state}"
