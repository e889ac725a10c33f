"""How many requests are remembered: of each caller, and of all of the warehouse, by spans of time."""

from django.db import models

from tenants.models import Warehouse


class IngestRequestCount(models.Model):
    """Of the requests that were first received in the span that began at `began_at`. The warehouse's own principal is
    empty. The database removes the row with its warehouse.
    """

    pk = models.CompositePrimaryKey("warehouse_id", "principal", "began_at")
    warehouse = models.ForeignKey(Warehouse, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    principal = models.TextField()
    began_at = models.DateTimeField()
    requests = models.BigIntegerField()

    class Meta:
        db_table = "ingest_request_count"

    def __str__(self) -> str:
        return f"{self.principal or 'all'} from {self.began_at}: {self.requests}"
