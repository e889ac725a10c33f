"""What callers do and use: calls of each route by the hour, and how much of a budget each caller has spent."""

from django.db import models


class EndpointCalls(models.Model):
    """`warehouse_id` outlives the warehouse, and is none for calls that were about no warehouse."""

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
    """How much of a budget was asked for in a period that began at `period`; more than its limit was not given."""

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
