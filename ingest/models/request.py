"""Requests whose events are in the log, for as long as a repeated one is recognised."""

from django.db import models

from tenants.models import Warehouse


class IngestRequest(models.Model):
    """The database removes the row with its warehouse."""

    pk = models.CompositePrimaryKey("warehouse_id", "principal", "key")
    warehouse = models.ForeignKey(Warehouse, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    principal = models.TextField()
    key = models.TextField(help_text="What the caller named it by, or what was computed of its content.")
    checksum = models.BinaryField(help_text="Of the content, which is the same if it is repeated.")
    received_at = models.DateTimeField()

    class Meta:
        db_table = "ingest_request"
        indexes = [models.Index(fields=["received_at"], name="ingest_request_received")]

    def __str__(self) -> str:
        return f"{self.key} of {self.principal}"
