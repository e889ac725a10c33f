"""Who streams into a warehouse, and how far it has come."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models import Warehouse


class IngestSource(models.Model):
    """A source belongs to who uses it: others may use the same id for another one.

    The database removes the row with its warehouse. The `recent_*` are of its last batches, the latest first.
    """

    pk = models.CompositePrimaryKey("warehouse_id", "principal", "source_id")
    warehouse = models.ForeignKey(Warehouse, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    principal = models.TextField()
    source_id = models.TextField()
    shard_name = models.TextField(default="", db_default="")
    last_received_sequence = models.BigIntegerField(null=True, help_text="Null: its first batch sets it.")
    last_acked_sequence = models.BigIntegerField(null=True)
    recent_positions = ArrayField(models.BigIntegerField(), default=list)
    recent_checksums = ArrayField(models.BigIntegerField(), default=list)
    batches = models.BigIntegerField(default=0, db_default=0)
    events = models.BigIntegerField(default=0, db_default=0)
    connected_at = models.DateTimeField()
    last_activity_at = models.DateTimeField()

    class Meta:
        db_table = "ingest_source"

    def __str__(self) -> str:
        return f"{self.source_id} of {self.principal} up to {self.last_received_sequence}"
