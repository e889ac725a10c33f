"""A soft deletion: everything that one request dropped, which can be restored until it expires."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models import Warehouse


class Deletion(models.Model):
    """Its rows (namespaces, tables, views) refer to it; it is deleted with the last of them, or when they are restored.

    `object_type`, `object_id` and `path` are those of the object that the request named; everything else was inside it.
    It can be restored until `begun_at` is set, which is committed before the first row is removed.
    """

    id = models.UUIDField(primary_key=True)
    warehouse = models.ForeignKey(Warehouse, on_delete=models.PROTECT)
    object_type = models.TextField()
    object_id = models.UUIDField()
    path = ArrayField(models.TextField())
    deleted_at = models.DateTimeField()
    expires_at = models.DateTimeField(help_text="Fixed at the drop; the database's clock counts.")
    begun_at = models.DateTimeField(null=True, help_text="When its removal began: from then on nothing is restored.")
    deleted_by = models.TextField()
    with_files = models.BooleanField(help_text="Whether the files are removed with the rows.")
    is_final = models.BooleanField(
        default=False, help_text="Dropped permanently: it is never restored; a task removes it."
    )
    purge_not_before = models.DateTimeField(null=True, help_text="When the files may go; null: with the rows.")
    task_id = models.UUIDField(null=True, help_text="The task that removes the rows; null: the request does it itself.")

    class Meta:
        db_table = "deletion"

    def __str__(self) -> str:
        return ".".join(self.path)
