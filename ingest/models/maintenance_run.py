"""What maintenance did to tables: the pipeline's process writes it, the management API reads it."""

from django.db import models

from tenants.models import Warehouse


class IngestMaintenanceRun(models.Model):
    """One operation on one table. The figures are of the files that the operation is about.

    The database removes the row with its warehouse.
    """

    class State(models.TextChoices):
        DONE = "done"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True)
    warehouse = models.ForeignKey(Warehouse, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    table_name = models.TextField(help_text="Levels and name, with dots, as it was then.")
    operation = models.TextField()
    state = models.TextField(choices=State.choices)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    files_before = models.BigIntegerField(null=True)
    files_after = models.BigIntegerField(null=True)
    bytes_before = models.BigIntegerField(null=True)
    bytes_after = models.BigIntegerField(null=True)
    reason = models.TextField()
    error = models.TextField(default="", db_default="")

    class Meta:
        db_table = "ingest_maintenance_run"
        constraints = [
            models.CheckConstraint(condition=models.Q(state__in=["done", "failed"]), name="maintenance_state_known"),
            models.CheckConstraint(
                condition=models.Q(state="done", error="") | (models.Q(state="failed") & ~models.Q(error="")),
                name="maintenance_failure_has_error",
            ),
        ]
        indexes = [
            models.Index(fields=["warehouse", "table_name", "operation", "ended_at"], name="maintenance_run_last"),
            models.Index(fields=["warehouse", "ended_at"], name="maintenance_run_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.operation} of {self.table_name}: {self.state}"
