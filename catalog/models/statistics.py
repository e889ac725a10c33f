"""The number of tables, views and generic tables in a warehouse by hour."""

from django.db import models

from tenants.models import Warehouse


class WarehouseStatistics(models.Model):
    warehouse = models.ForeignKey(Warehouse, on_delete=models.CASCADE)
    timestamp = models.DateTimeField(help_text="The end of the hour that the numbers are of.")
    number_of_tables = models.BigIntegerField()
    number_of_views = models.BigIntegerField()
    number_of_generic_tables = models.BigIntegerField(db_default=0)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "warehouse_statistics"
        constraints = [models.UniqueConstraint(fields=["warehouse", "timestamp"], name="warehouse_statistics_hour")]

    def __str__(self) -> str:
        return f"{self.warehouse_id} at {self.timestamp}"
