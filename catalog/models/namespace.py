"""A namespace: a path of names below a warehouse."""

from collections.abc import Sequence
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models

from lakewarden.names import match_key
from tenants.models import Warehouse

KEY_SEPARATOR = "\x1f"


def path_key(path: Sequence[str]) -> str:
    """What equal paths have in common, whatever their case."""
    return KEY_SEPARATOR.join(match_key(name) for name in path)


class NamespaceQuerySet(models.QuerySet["Namespace"]):
    def at(self, warehouse_id: UUID, path: Sequence[str]) -> "NamespaceQuerySet":
        """The namespace of a path with its warehouse: one row or none."""
        if any("\x00" in name for name in path):
            return self.none()  # the database holds no such text, and refuses to look for it
        return self.select_related("warehouse__project").filter(warehouse_id=warehouse_id, path_key=path_key(path))

    def children(self, warehouse_id: UUID, parent: "Namespace | None") -> "NamespaceQuerySet":
        """Direct children, in the order of their keys."""
        return self.filter(warehouse_id=warehouse_id, parent=parent).order_by("name_key")


class Namespace(models.Model):
    id = models.UUIDField(primary_key=True)
    warehouse = models.ForeignKey(Warehouse, on_delete=models.PROTECT)
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True)
    path = ArrayField(models.TextField())
    path_key = models.TextField()
    name_key = models.TextField()
    lineage = ArrayField(models.UUIDField(), help_text="Ids from the top namespace down to this one.")
    properties = models.JSONField(default=dict)
    version = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(null=True)

    objects = NamespaceQuerySet.as_manager()

    class Meta:
        db_table = "namespace"
        constraints = [models.UniqueConstraint(fields=["warehouse", "path_key"], name="namespace_path_unique")]
        indexes = [models.Index(fields=["warehouse", "parent", "name_key"], name="namespace_children")]

    def __str__(self) -> str:
        return ".".join(self.path)
