"""A batch of events as it was received."""

from django.db import models


class IngestBatch(models.Model):
    """`content` is the JSON array of the batch's events, byte for byte as its sender wrote it, or a reference
    to where that is in Kafka.

    Partitioned by warehouse and position. `tables` has an object for each table that the events name: `table` as the
    sender wrote it, `namespace` (a list of names), `name`, and the `id` of the table, or null where it is to be made.
    """

    pk = models.CompositePrimaryKey("warehouse_id", "position")
    warehouse_id = models.UUIDField()
    position = models.BigIntegerField()
    source_id = models.TextField()
    principal = models.TextField()
    sequence_number = models.BigIntegerField(null=True, help_text="Null for what came in a request.")
    received_at = models.DateTimeField()
    events = models.IntegerField()
    bytes = models.IntegerField(help_text="Of the content before it was compressed.")
    encoding = models.SmallIntegerField(default=0, help_text="0: plain, 1: gzip; 2 and 3: the same, in Kafka.")
    tables = models.JSONField()
    content = models.BinaryField()

    class Meta:
        db_table = "ingest_batch"

    def __str__(self) -> str:
        return f"{self.warehouse_id} {self.position}: {self.events} events of {self.source_id}"
