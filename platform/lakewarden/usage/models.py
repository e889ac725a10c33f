"""Statistics of API calls by hour, and how much of each budget a caller has used."""

from django.db import models


class EndpointCalls(models.Model):
    """`warehouse_id` is not a foreign key, so counts outlive a warehouse; null for calls that do
    not concern a warehouse.
    """

    project = models.ForeignKey("tenants.Project", on_delete=models.CASCADE, db_index=False)
    hour = models.DateTimeField(help_text="The hour's start.")
    route = models.TextField(help_text="Method and template, e.g. `GET /catalog/v1/{prefix}/namespaces`.")
    status = models.SmallIntegerField()
    warehouse_id = models.UUIDField(null=True)
    count = models.BigIntegerField()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "endpoint_calls"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "hour", "route", "status", "warehouse_id"],
                name="endpoint_calls_unique",
                nulls_distinct=False,
            )
        ]
        indexes = [models.Index(fields=["hour"], name="endpoint_calls_hour")]

    def __str__(self) -> str:
        return f"{self.route} {self.status}: {self.count} times from {self.hour}"


class Spending(models.Model):
    """How much of a budget was requested in the period that began at `period`."""

    budget = models.TextField()
    spender = models.TextField()
    period = models.DateTimeField()
    asked = models.BigIntegerField(help_text="All that was asked for, refused or not.")
    refused = models.BigIntegerField(default=0, help_text="How often it was too much.")

    class Meta:
        db_table = "spending"
        constraints = [models.UniqueConstraint(fields=["period", "budget", "spender"], name="spending_unique")]

    def __str__(self) -> str:
        return f"{self.spender}: {self.asked} of {self.budget} from {self.period}"
