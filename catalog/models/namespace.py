"""Namespaces: a path of names in a warehouse."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models

from catalog.models.deletion import Deletion
from lakewarden.authz.ledger import visible_objects
from lakewarden.context import PrincipalId
from lakewarden.errors import NoSuchNamespace
from lakewarden.names import MAX_DEPTH, match_key
from lakewarden.prepared_statements import Shape, fetch
from tenants.models import Warehouse
from tenants.models.warehouse import PROJECT, WAREHOUSE, WITH_PROJECT, warehouse_of

KEY_SEPARATOR = "\x1f"
MAX_PATH_BYTES = 2000  # longest path key: PostgreSQL cannot index longer values


def can_be(path: Sequence[str]) -> bool:
    """Whether a namespace could have the path: what is far too long, or holds a NUL, is not even looked for.

    A name may be written with more characters than it is kept with (decomposed ones), but not with many more.
    """
    return (
        len(path) <= MAX_DEPTH
        and sum(len(name) for name in path) <= 4 * MAX_PATH_BYTES
        and not any("\x00" in name for name in path)
    )


def path_key(path: Sequence[str]) -> str:
    """The key of a path: equal for paths that differ only in case or in Unicode composition."""
    return KEY_SEPARATOR.join(match_key(name) for name in path)


class ListedNamespace(NamedTuple):
    """A namespace in a list."""

    path: list[str]
    id: UUID
    is_protected: bool


class NamespaceQuerySet(models.QuerySet["Namespace"]):
    def placed(self) -> "NamespaceQuerySet":
        """Rows for authorization: with warehouse and project, but without the properties, which may be large."""
        return self.select_related("warehouse__project").defer("properties")

    def find(self, warehouse_id: UUID, path: Sequence[str]) -> "Namespace | None":
        """The namespace with this path that is not dropped, with its warehouse and project;
        None if it does not exist.
        """
        if not can_be(path):
            return None
        rows = fetch(_FIND, [warehouse_id, path_key(path)])
        return namespace_of(rows[0]) if rows else None

    def listed(
        self,
        warehouse_id: UUID,
        parent_id: UUID | None,
        *,
        after: str,
        limit: int,
        shown_to: Sequence[PrincipalId] | None,
    ) -> list[tuple[ListedNamespace, str]]:
        """Direct children that are not dropped, with name keys greater than `after`, sorted by key, each with its key.

        `shown_to`: only those on which, or inside which, one of these principals has a grant; None: all.
        """
        page = {"warehouse": warehouse_id, "parent": parent_id, "after": after, "limit": limit}
        below = _TOP if parent_id is None else _CHILDREN
        if shown_to is None:
            rows = fetch(below.format(filter=""), page)
        else:
            within = {"principals": list(shown_to), "within": str(parent_id or warehouse_id)}
            rows = fetch(below.format(filter=f"and id in ({visible_objects.NAMESPACES})"), {**page, **within})
        return [(ListedNamespace(*values), key) for *values, key in rows]

    def of_all_levels(
        self, warehouse_id: UUID, *, after: str, limit: int | None, shown_to: Sequence[PrincipalId] | None
    ) -> list[tuple[list[str], str]]:
        """Paths and keys of all namespaces in the warehouse that are not dropped, with keys greater than `after`.

        Parents come before their children. `shown_to` as in `listed`.
        """
        page = {"warehouse": warehouse_id, "after": after, "limit": limit}
        if shown_to is None:
            return [(path, key) for path, key in fetch(_ALL_LEVELS.format(filter=""), page)]
        within = {"principals": list(shown_to), "within": str(warehouse_id), "showing": visible_objects.SHOWING_BELOW}
        rows = fetch(_ALL_LEVELS.format(filter=f"and id in ({visible_objects.ALL_NAMESPACES})"), {**page, **within})
        return [(path, key) for path, key in rows]


NamespaceManager = models.Manager.from_queryset(NamespaceQuerySet)


class LiveNamespaces(NamespaceManager["Namespace"]):
    def get_queryset(self) -> NamespaceQuerySet:
        return NamespaceQuerySet(self.model, using=self._db).filter(deleted_at__isnull=True)


class Namespace(models.Model):
    id = models.UUIDField(primary_key=True)
    warehouse = models.ForeignKey(Warehouse, on_delete=models.PROTECT)
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True)
    path = ArrayField(models.TextField())
    path_key = models.TextField()
    name_key = models.TextField()
    lineage = ArrayField(models.UUIDField(), help_text="Ids from the top namespace down to this one.")
    properties = models.JSONField(default=dict)
    protection = models.JSONField(null=True, help_text="Who protected it from deletion, when and why.")
    version = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)
    deletion = models.ForeignKey(Deletion, on_delete=models.PROTECT, null=True, db_index=False)

    objects = LiveNamespaces()
    everything = NamespaceQuerySet.as_manager()
    """Includes dropped namespaces that can be restored."""

    class Meta:
        db_table = "namespace"
        constraints = [
            models.UniqueConstraint(
                fields=["warehouse", "path_key"],
                condition=models.Q(deleted_at__isnull=True),
                name="namespace_path_unique",
            ),
            models.CheckConstraint(
                condition=models.Q(deleted_at__isnull=True, deletion__isnull=True)
                | models.Q(deleted_at__isnull=False, deletion__isnull=False),
                name="namespace_deleted_by_a_deletion",
            ),
        ]
        indexes = [
            models.Index(fields=["warehouse", "parent", "name_key"], name="namespace_children"),
            models.Index(fields=["deletion"], condition=models.Q(deletion__isnull=False), name="namespace_deleted"),
        ]

    def __str__(self) -> str:
        return ".".join(self.path)

    def refresh_from_db(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 Django's signature
        """Also called to load properties that were not selected (`Shape`). Raises NoSuchNamespace if it was removed."""
        try:
            super().refresh_from_db(*arguments, **options)
        except Namespace.DoesNotExist as error:
            raise NoSuchNamespace(f"Namespace does not exist: {self}") from error


NAMESPACE = Shape(Namespace, "n", narrow="properties")


def namespace_of(values: Sequence[Any]) -> Namespace:
    """Build a namespace from a row of COLUMNS."""
    found = NAMESPACE.instance(values[: len(NAMESPACE)])
    found.warehouse = warehouse_of(values[len(NAMESPACE) :])
    return found


HELD = "select lineage[:cardinality(lineage) - 1] from namespace where id = %s::text::uuid for key share"
"""Keeps one from being deleted until the transaction ends; returns the namespaces above it."""
COLUMNS = f"{NAMESPACE.columns}, {WAREHOUSE.columns}, {PROJECT.columns}"
ADDED = """
    added as (
        insert into namespace (id, warehouse_id, parent_id, path, path_key, name_key, lineage, properties, version,
                               created_at)
        select id, warehouse_id, parent_id, path, path_key, name_key, lineage, properties, 0, now()
        from placed order by warehouse_id, path_key
        on conflict do nothing returning id
    )
"""
"""SQL for a statement that adds several: the rows of `placed`, a member of its `with`, as far as their paths are free.

In the order of the paths, so that two such statements never wait for each other.
"""
_FIND = f"""
    select {COLUMNS} from namespace n
    join {WITH_PROJECT} on w.id = n.warehouse_id
    where n.warehouse_id = %s and n.path_key = %s and n.deleted_at is null
"""  # noqa: S608 names of our own columns
_TOP = """
    select path, id, protection is not null, name_key from namespace
    where warehouse_id = %(warehouse)s and parent_id is null and deleted_at is null and name_key > %(after)s {filter}
    order by name_key limit %(limit)s
"""
_ALL_LEVELS = """
    select path, path_key from namespace
    where warehouse_id = %(warehouse)s and deleted_at is null and path_key > %(after)s {filter}
    order by path_key limit %(limit)s
"""
_CHILDREN = """
    select path, id, protection is not null, name_key from namespace
    where warehouse_id = %(warehouse)s and parent_id = %(parent)s and deleted_at is null
      and name_key > %(after)s {filter}
    order by name_key limit %(limit)s
"""
