"""A warehouse: a storage location of its own, with the namespaces and tables in it."""

from django.db import models

from lakewarden.storage.profiles import StorageProfile, parse_profile
from tenants.models.project import Project


class Warehouse(models.Model):
    class Status(models.TextChoices):
        ACTIVE = "active"
        INACTIVE = "inactive"

    id = models.UUIDField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    name = models.TextField()
    name_key = models.TextField()
    status = models.TextField(choices=Status.choices, default=Status.ACTIVE)
    storage_profile = models.JSONField()
    location = models.TextField(unique=True)
    delete_profile = models.JSONField()
    version = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "warehouse"
        constraints = [models.UniqueConstraint(fields=["project", "name_key"], name="warehouse_name_unique")]

    def __str__(self) -> str:
        return self.name

    @property
    def profile(self) -> StorageProfile:
        return parse_profile(self.storage_profile)
