"""How often each route was called in each project, hour by hour; hours without a call have no row."""

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

    def __str__(self) -> str:
        return f"{self.route} {self.status}: {self.count} times from {self.hour}"
