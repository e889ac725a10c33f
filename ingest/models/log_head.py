"""The head of a warehouse's log: whoever appends holds its row, so positions are dense and in the order of commits."""

from django.contrib.postgres.functions import RandomUUID
from django.db import models

from tenants.models import Warehouse


class IngestLogHead(models.Model):
    """`buffered_*` is what lies between the two positions; `total_*` and the rest are counted since the beginning.

    The database removes the row with its warehouse.
    """

    warehouse = models.OneToOneField(Warehouse, on_delete=models.DO_NOTHING, primary_key=True, db_constraint=False)
    log_id = models.UUIDField(
        db_default=RandomUUID(),
        help_text="Positions mean nothing in another log, such as one made after this one was lost.",
    )
    last_position = models.BigIntegerField(default=0, db_default=0)
    flushed_position = models.BigIntegerField(
        default=0, db_default=0, help_text="Everything up to it is in snapshots of tables."
    )
    buffered_batches = models.BigIntegerField(default=0, db_default=0)
    buffered_events = models.BigIntegerField(default=0, db_default=0)
    buffered_bytes = models.BigIntegerField(default=0, db_default=0)
    total_batches = models.BigIntegerField(default=0, db_default=0)
    total_events = models.BigIntegerField(default=0, db_default=0)
    total_bytes = models.BigIntegerField(default=0, db_default=0)
    checks = models.BigIntegerField(default=0, db_default=0, help_text="Batches that were compared with earlier ones.")
    duplicates = models.BigIntegerField(default=0, db_default=0)
    fallback_batches = models.BigIntegerField(default=0, db_default=0)
    fallback_position = models.BigIntegerField(
        default=0, db_default=0, help_text="The last one that came through a fallback file."
    )
    newest_at = models.DateTimeField(null=True)
    flushed_at = models.DateTimeField(null=True)
    partitioned_until = models.BigIntegerField(
        default=0, db_default=0, help_text="Positions below it have a partition, or lie in the default one."
    )

    class Meta:
        db_table = "ingest_log_head"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(flushed_position__gte=0, flushed_position__lte=models.F("last_position")),
                name="ingest_flushed_was_received",
            ),
            models.CheckConstraint(
                condition=models.Q(buffered_batches__gte=0, buffered_events__gte=0, buffered_bytes__gte=0),
                name="ingest_buffered_is_counted",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.warehouse_id}: {self.flushed_position} of {self.last_position}"
