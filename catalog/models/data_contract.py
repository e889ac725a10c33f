"""Data contracts: what commits below a warehouse, or to a namespace, table or view, must keep."""

from django.db import models

from catalog.models.namespace import Namespace
from catalog.models.tabular import Tabular
from tenants.models import Warehouse


class DataContract(models.Model):
    """`namespace` and `tabular` are null for the contract of what contains them; `object` is the id of its object.

    The database removes the row with its object, however that is deleted.
    """

    warehouse = models.ForeignKey(Warehouse, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    namespace = models.ForeignKey(
        Namespace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, null=True
    )
    tabular = models.ForeignKey(Tabular, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, null=True)
    object = models.UUIDField()
    document = models.JSONField(help_text="The contract as it was set, without defaults.")
    version = models.BigIntegerField(help_text="The warehouse's version of contracts when it was set.")
    set_by = models.TextField()
    set_at = models.DateTimeField()

    class Meta:
        db_table = "data_contract"
        constraints = [
            models.UniqueConstraint(fields=["warehouse", "object"], name="data_contract_unique"),
            models.CheckConstraint(
                condition=models.Q(namespace__isnull=True) | models.Q(tabular__isnull=True),
                name="data_contract_has_one_object",
            ),
        ]
        indexes = [
            models.Index(fields=["namespace"], condition=models.Q(namespace__isnull=False), name="contract_namespace"),
            models.Index(fields=["tabular"], condition=models.Q(tabular__isnull=False), name="contract_tabular"),
        ]

    def __str__(self) -> str:
        return f"contract of {self.object}"


FOUND = """
    select k.i, (
        select coalesce(json_agg(json_build_object('object', c.object, 'document', c.document)), '[]')::text
        from data_contract c where c.warehouse_id = k.warehouse and c.object = any(string_to_array(k.ids, ',')::uuid[])
    )
    from unnest(%s::uuid[], %s::text[]) with ordinality as k(warehouse, ids, i)
"""
"""(warehouse id, ids of objects separated by commas) → their contracts, as JSON text."""
