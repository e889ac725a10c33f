"""What the catalog keeps of a generic table besides its row: its files say the rest."""

from collections.abc import Collection
from uuid import UUID

from django.db import models

from catalog.models.tabular import Tabular


class GenericTableQuerySet(models.QuerySet["GenericTable"]):
    def formats(self, warehouse_id: UUID, identifiers: Collection[UUID]) -> dict[UUID, str]:
        """By the ids that callers know."""
        rows = self.filter(tabular__warehouse_id=warehouse_id, tabular__uuid__in=identifiers)
        return dict(rows.values_list("tabular__uuid", "format"))


class GenericTable(models.Model):
    """`schema` and `statistics` are the JSON that the client wrote, letter by letter."""

    tabular = models.OneToOneField(Tabular, on_delete=models.CASCADE, primary_key=True)
    format = models.TextField()
    doc = models.TextField(null=True)  # noqa: DJ001 an empty text is not the same as none
    properties = models.JSONField(default=dict)
    schema = models.TextField(null=True)  # noqa: DJ001 JSON is never an empty text
    statistics = models.TextField(null=True)  # noqa: DJ001 JSON is never an empty text

    objects = models.Manager.from_queryset(GenericTableQuerySet)()

    class Meta:
        db_table = "generic_table"

    def __str__(self) -> str:
        return f"{self.format} at {self.tabular_id}"
