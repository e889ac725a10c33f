"""The sockets that are open, on all servers: leases that the server renews, so those of a dead one end."""

from django.db import models

from tenants.models import Warehouse


class IngestConnection(models.Model):
    """The database removes the row with its warehouse."""

    id = models.UUIDField(primary_key=True)
    warehouse = models.ForeignKey(Warehouse, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    server = models.UUIDField(help_text="The process that holds the socket, since its start.")
    address = models.TextField()
    principal = models.TextField()
    source_id = models.TextField()
    until = models.DateTimeField()

    class Meta:
        db_table = "ingest_connection"
        indexes = [
            models.Index(fields=["warehouse", "principal", "source_id"], name="ingest_connection_source"),
            models.Index(fields=["address"], name="ingest_connection_address"),
            models.Index(fields=["server"], name="ingest_connection_server"),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} of {self.principal} from {self.address}"
