"""Tables and views: they share names, locations and the pointer to their newest metadata file."""

from collections.abc import Sequence
from uuid import UUID

from django.db import models

from catalog.models.namespace import Namespace, path_key
from lakewarden.names import match_key
from tenants.models import Warehouse


def around(location: str) -> list[str]:
    """`location` and every folder that it lies in."""
    parts = location.split("/")
    return ["/".join(parts[:count]) for count in range(3, len(parts) + 1)]


class TabularQuerySet(models.QuerySet["Tabular"]):
    def live(self) -> "TabularQuerySet":
        return self.filter(deleted_at__isnull=True)

    def at(self, warehouse_id: UUID, path: Sequence[str], name: str) -> "TabularQuerySet":
        """The live table or view of a name, with its namespace and warehouse: one row or none."""
        if any("\x00" in each for each in (*path, name)):
            return self.none()  # the database holds no such text, and refuses to look for it
        return (
            self.live()
            .select_related("namespace__warehouse__project")
            .filter(warehouse_id=warehouse_id, namespace__path_key=path_key(path), name_key=match_key(name))
        )

    def overlapping(self, warehouse_id: UUID, location: str) -> "TabularQuerySet":
        """Those at, in or around `location`, dropped ones that can still be restored included."""
        touching = models.Q(location__in=around(location)) | models.Q(location__startswith=location + "/")
        return self.filter(touching, warehouse_id=warehouse_id)


class Tabular(models.Model):
    class Kind(models.TextChoices):
        TABLE = "table"
        VIEW = "view"

    id = models.UUIDField(primary_key=True)
    warehouse = models.ForeignKey(Warehouse, on_delete=models.PROTECT)
    namespace = models.ForeignKey(Namespace, on_delete=models.PROTECT)
    kind = models.TextField(choices=Kind.choices)
    name = models.TextField()
    name_key = models.TextField()
    uuid = models.UUIDField(help_text="The UUID in the table's or view's own metadata.")
    location = models.TextField()
    metadata_location = models.TextField()
    version = models.BigIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True)

    objects = TabularQuerySet.as_manager()

    class Meta:
        db_table = "tabular"
        constraints = [
            models.UniqueConstraint(
                fields=["namespace", "name_key"],
                condition=models.Q(deleted_at__isnull=True),
                name="tabular_name_unique",
            ),
            models.UniqueConstraint(fields=["warehouse", "location"], name="tabular_location_unique"),
            models.CheckConstraint(condition=models.Q(kind__in=["table", "view"]), name="tabular_kind_known"),
        ]
        indexes = [
            models.Index(
                fields=["warehouse", "location"],
                opclasses=["uuid_ops", "text_pattern_ops"],
                name="tabular_location_prefix",
            )
        ]

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"


class TabularDocument(models.Model):
    """The newest metadata as it is sent: see catalog.documents for the form of `content`."""

    tabular = models.OneToOneField(Tabular, on_delete=models.CASCADE, primary_key=True)
    version = models.BigIntegerField()
    content = models.BinaryField()
    crc = models.BigIntegerField()
    length = models.BigIntegerField()

    class Meta:
        db_table = "tabular_document"

    def __str__(self) -> str:
        return f"{self.tabular_id} version {self.version}"
