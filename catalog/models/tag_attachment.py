"""Tags on objects: a definition of the project, set on a warehouse, namespace, table, view or column, with a value."""

from django.db import models

from catalog.models.namespace import Namespace
from catalog.models.tabular import Tabular
from tenants.models import TagDefinition, Warehouse


class TagAttachment(models.Model):
    """`namespace` and `tabular` are null for a tag of what contains them; `field_id` is set for a column of `tabular`.

    The database removes the row with its object, however that is deleted, and refuses to delete its definition.
    """

    definition = models.ForeignKey(TagDefinition, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    target_type = models.TextField(help_text="A scope of definitions.")
    warehouse = models.ForeignKey(Warehouse, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    namespace = models.ForeignKey(
        Namespace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, null=True
    )
    tabular = models.ForeignKey(Tabular, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, null=True)
    field_id = models.IntegerField(null=True)
    value = models.TextField(null=True)  # noqa: DJ001 a marker has none
    applied_by = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "tag_attachment"
        constraints = [
            models.UniqueConstraint(
                fields=["tabular", "namespace", "warehouse", "field_id", "definition"],
                nulls_distinct=False,
                name="tag_attachment_unique",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    target_type="warehouse", namespace__isnull=True, tabular__isnull=True, field_id__isnull=True
                )
                | models.Q(
                    target_type="namespace", namespace__isnull=False, tabular__isnull=True, field_id__isnull=True
                )
                | models.Q(target_type="column", namespace__isnull=True, tabular__isnull=False, field_id__isnull=False)
                | (
                    models.Q(namespace__isnull=True, tabular__isnull=False, field_id__isnull=True)
                    & ~models.Q(target_type__in=["warehouse", "namespace", "column"])
                ),
                name="tag_attachment_has_one_target",
            ),
        ]
        indexes = [
            models.Index(fields=["definition", "id"], name="tag_attachment_definition"),
            models.Index(
                fields=["namespace"], condition=models.Q(namespace__isnull=False), name="tag_attachment_namespace"
            ),
            models.Index(fields=["warehouse", "target_type"], name="tag_attachment_warehouse"),
        ]

    def __str__(self) -> str:
        return f"{self.definition_id} on {self.target_type}"
