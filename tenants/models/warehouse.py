"""A warehouse: namespaces and tables with a storage location that no other warehouse shares."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models

from lakewarden.authz.ledger import visible_objects
from lakewarden.context import PrincipalId
from lakewarden.prepared_statements import Shape, fetch
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.profiles import parse_profile
from tenants.models.delete_profile import DeleteProfile
from tenants.models.format_policy import FormatVersionPolicy, all_format_versions
from tenants.models.project import Project
from tenants.models.reachable_location import LastAccess

SELF_MANAGED = "self-managed"


class WarehouseQuerySet(models.QuerySet["Warehouse"]):
    def find(self, identifier: UUID) -> "Warehouse | None":
        """The warehouse with this id, and its project, in one query; None if it does not exist."""
        return _one("w.id = %s", [identifier])

    def shown_to(self, principals: Sequence[PrincipalId], *, project_id: str) -> "WarehouseQuerySet":
        """The project's warehouses on which, or on something in which, one of `principals` holds a privilege."""
        rows = fetch(visible_objects.WAREHOUSES, {"principals": list(principals), "project": project_id})
        return self.filter(id__in={identifier for (identifier,) in rows})

    def find_named(self, project_id: str, name_key: str) -> "Warehouse | None":
        return _one("w.project_id = %s and w.name_key = %s", [project_id, name_key])


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
    storage_secret = models.UUIDField(null=True, help_text="Refers to the credential in the secret store.")
    storage_credential_type = models.TextField(db_default="", default="", help_text="Empty: there is none.")
    location = models.TextField(unique=True)
    access_ends_at = models.DateTimeField(
        null=True, help_text="When the last access ends that engines received under earlier storage profiles."
    )
    delete_profile = models.JSONField()
    protection = models.JSONField(null=True, help_text="Who protected it from deletion, when and why.")
    allowed_format_versions = ArrayField(models.IntegerField(), default=all_format_versions)
    default_format_version = models.IntegerField(null=True)
    managed_by = models.TextField(default=SELF_MANAGED)
    contracts = models.BigIntegerField(
        db_default=0, default=0, help_text="The version of all data contracts in it; 0: there has never been one."
    )
    version = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(null=True)

    objects = WarehouseQuerySet.as_manager()

    _parsed: tuple[object, StorageProfile] | None = None

    class Meta:
        db_table = "warehouse"
        constraints = [models.UniqueConstraint(fields=["project", "name_key"], name="warehouse_name_unique")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_protected(self) -> bool:
        return self.protection is not None

    @property
    def format_policy(self) -> FormatVersionPolicy:
        return FormatVersionPolicy(tuple(self.allowed_format_versions), self.default_format_version)

    @property
    def deletion_profile(self) -> DeleteProfile:
        return DeleteProfile.parse(self.delete_profile)

    @property
    def credential_type(self) -> dict[str, str] | None:
        """The public part of the credential; None: the warehouse has none."""
        kinds = {kind.KIND: kind for kind in self.profile.CREDENTIALS}
        found = kinds.get(self.storage_credential_type)
        return {"type": found.FAMILY, "credential_type": found.KIND} if found else None

    @property
    def last_access(self) -> LastAccess:
        return LastAccess.of(self.profile.access_lasts, self.access_ends_at)

    @property
    def profile(self) -> StorageProfile:
        # instances are kept for many requests, and parsing takes as long as the rest of what asks for it
        if self._parsed is None or self._parsed[0] is not self.storage_profile:
            self._parsed = (self.storage_profile, parse_profile(self.storage_profile))
        return self._parsed[1]


ACTIVE_IN_EPOCH = """
    join warehouse w on w.id = {warehouse} and w.status = 'active'
    join project on project.id = w.project_id and project.authz_epoch = {epoch}
"""
"""For the queries of other apps: only in a warehouse that is active, while no right in its project was changed."""
WITH_PROJECT: Final = "(warehouse w join project p on p.id = w.project_id)"
"""SQL for other apps' queries, which join it."""
OF_ITS_PROJECT: Final = (
    "select w.id from warehouse own join warehouse w on w.project_id = own.project_id where own.id = {warehouse}"
)
"""SQL for other apps' queries: the ids of all warehouses of a warehouse's project."""
PLACES: Final = "select id, location from warehouse"
"""SQL for other apps' queries, which read it as `({PLACES}) w`."""
HELD: Final = "select '{}'::uuid[] from warehouse where id = %s::text::uuid for key share"
"""Keeps one from being deleted until the transaction ends; there are no namespaces above it."""
LOCATION_KEPT: Final = "select location from warehouse where id = %s for share"
"""Keeps one at its location until the transaction ends."""
LOCATIONS_KEPT: Final = (
    "select w.id, w.location from warehouse w where w.id in ({ids}) order by w.id for share of w skip locked"
)
"""SQL for other apps' queries: as LOCATION_KEPT, without those that others are changing."""
CONTRACTS: Final = "(select contracts from warehouse where id = {warehouse})"
"""SQL for other apps' queries: the version of the data contracts in the warehouse."""
WAREHOUSE = Shape(Warehouse, "w")
PROJECT = Shape(Project, "p")


def warehouse_of(values: Sequence[Any]) -> Warehouse:
    """Build a warehouse from a row of WAREHOUSE.columns followed by PROJECT.columns."""
    found = WAREHOUSE.instance(values[: len(WAREHOUSE)])
    found.project = PROJECT.instance(values[len(WAREHOUSE) :])
    return found


def _one(condition: str, parameters: Sequence[object]) -> Warehouse | None:
    rows = fetch(
        f"select {WAREHOUSE.columns}, {PROJECT.columns} from warehouse w "  # noqa: S608 names of our own columns
        f"join project p on p.id = w.project_id where {condition}",
        parameters,
    )
    return warehouse_of(rows[0]) if rows else None
