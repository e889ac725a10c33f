"""Tables, views and generic tables: one model, because they share names and locations.

Tables and views also have a pointer to their current metadata file; a generic table has its own row of `GenericTable`.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from django.db import models

from catalog.documents import Document
from catalog.models.deletion import Deletion
from catalog.models.namespace import COLUMNS as NAMESPACE_COLUMNS
from catalog.models.namespace import Namespace, can_be, namespace_of, path_key
from lakewarden.authz.ledger import visible_objects
from lakewarden.context import PrincipalId
from lakewarden.names import MAX_NAME_LENGTH, match_key
from lakewarden.prepared_statements import Shape, execute, fetch
from tenants.models import Warehouse
from tenants.models.warehouse import CONTRACTS, WITH_PROJECT

LARGE = 2 * 1024 * 1024
"""Uncompressed bytes of a document: a longer one is fetched by a query of its own."""


class ListedTabular(NamedTuple):
    """A table, view or generic table in a list; `id` is the one that callers know it by."""

    name: str
    id: UUID
    is_protected: bool


class TabularQuerySet(models.QuerySet["Tabular"]):
    def placed(self) -> "TabularQuerySet":
        """Rows for authorization: with namespace, warehouse and project, but without large columns."""
        return self.select_related("namespace__warehouse__project").defer("namespace__properties")

    def find(self, warehouse_id: UUID, path: Sequence[str], name: str) -> "Tabular | None":
        """What has this name and is not dropped, with its namespace, warehouse and project, or None."""
        if not can_be(path) or "\x00" in name or len(name) > 4 * MAX_NAME_LENGTH:
            return None  # PostgreSQL cannot store NUL, so the name cannot exist
        rows = fetch(_FIND, [warehouse_id, path_key(path), match_key(name)])
        if not rows:
            return None
        found = TABULAR.instance(rows[0][: len(TABULAR)])
        found.namespace = namespace_of(rows[0][len(TABULAR) :])
        return found

    def with_ids(self, places: Collection[tuple[UUID | None, UUID | None]]) -> "TabularQuerySet":
        """Those that callers know by these ids, each of a warehouse; some more of the same warehouses and ids."""
        warehouses, ids = ({place[at] for place in places} - {None} for at in (0, 1))
        return self.filter(warehouse_id__in=warehouses, uuid__in=ids)

    def listed(
        self, namespace_id: UUID, kind: str, *, after: str, limit: int, shown_to: Sequence[PrincipalId] | None
    ) -> list[tuple[ListedTabular, str]]:
        """Those that are not dropped, with name keys greater than `after`, sorted by key, each with its key.

        `shown_to`: only those on which one of these principals has a grant; None: all.
        """
        page = {"namespace": namespace_id, "kind": kind, "after": after, "limit": limit}
        if shown_to is None:
            rows = fetch(_LISTED.format(filter=""), page)
        else:
            within = {
                "principals": list(shown_to),
                "within": str(namespace_id),
                "showing": visible_objects.SHOWING[kind],
            }
            rows = fetch(_LISTED.format(filter=f"and id in ({visible_objects.TABULARS})"), {**page, **within})
        return [(ListedTabular(*values), key) for *values, key in rows]

    def with_document(self, identifier: UUID, *, ask: Callable[[int], None]) -> "tuple[Tabular, Document] | None":
        """One that is not dropped, and its document, both of the same version.

        `ask` is called with the document's length and may raise. A large document is fetched by a second query, after
        that.
        """
        rows = fetch(_WITH_DOCUMENT, [LARGE, identifier])
        if rows:
            *_, content, _crc, length = rows[0]
            ask(length)
            if content is None:
                rows = fetch(_WITH_DOCUMENT, [None, identifier])
        if not rows:
            return None
        *values, content, crc, length = rows[0]
        return TABULAR.instance(values), Document(content, crc, length)

    def move(self, before: "Tabular", after: "Tabular", document: Document) -> bool:
        """Compare and swap: store `after` in the row and its document if the row is still `before`, and no data
        contract of its warehouse was changed since that was looked up; in a transaction.
        """
        contracts = before.namespace.warehouse.contracts
        parameters = [after.location, after.metadata_location, before.id, before.version, contracts]
        stored = [document.content, document.crc, document.length]
        return bool(fetch(_MOVE, [*parameters, *stored]))

    def remove(self, identifier: UUID) -> bool:
        """Delete a live one with its document and its reports, part of a transaction; whether it was there."""
        return bool(fetch(_REMOVE, [identifier]))

    def kind_of(self, namespace_id: UUID, name_key: str) -> str | None:
        """The kind of what has the name; None if it is free."""
        rows = fetch(_KIND, [namespace_id, name_key])
        return str(rows[0][0]) if rows else None

    def add(self, tabular: "Tabular", document: Document) -> None:
        """Insert the row and its document as version 1. Raises IntegrityError if the name or the location is taken."""
        row = [tabular.id, tabular.warehouse_id, tabular.namespace_id, tabular.kind, tabular.name, tabular.name_key]
        place = [tabular.uuid, tabular.location, tabular.metadata_location]
        execute(_ADD, [*row, *place, document.content, document.crc, document.length])


TabularManager = models.Manager.from_queryset(TabularQuerySet)


class LiveTabulars(TabularManager["Tabular"]):
    def get_queryset(self) -> TabularQuerySet:
        return TabularQuerySet(self.model, using=self._db).filter(deleted_at__isnull=True)


class Tabular(models.Model):
    """A client may choose the `uuid`; the `id` is the catalog's own and never leaves it, so that nothing (rights,
    protection, tasks, places) ever comes along with a uuid (ADR 0029).
    """

    class Kind(models.TextChoices):
        TABLE = "table", "table"
        VIEW = "view", "view"
        GENERIC_TABLE = "generic-table", "generic table"

    id = models.UUIDField(primary_key=True, help_text="The key that rights, places and documents hang on.")
    warehouse = models.ForeignKey(Warehouse, on_delete=models.PROTECT)
    namespace = models.ForeignKey(Namespace, on_delete=models.PROTECT)
    kind = models.TextField(choices=Kind.choices)
    name = models.TextField()
    name_key = models.TextField()
    uuid = models.UUIDField(help_text="The id that callers know: of its metadata, for its whole life.")
    location = models.TextField()
    metadata_location = models.TextField(help_text="Empty for a generic table.")
    protection = models.JSONField(null=True, help_text="Who protected it from deletion, when and why.")
    version = models.BigIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True)
    deletion = models.ForeignKey(Deletion, on_delete=models.PROTECT, null=True, db_index=False)

    objects = LiveTabulars()
    everything = TabularQuerySet.as_manager()
    """Includes dropped ones that can be restored."""

    class Meta:
        db_table = "tabular"
        constraints = [
            models.UniqueConstraint(
                fields=["namespace", "name_key"],
                condition=models.Q(deleted_at__isnull=True),
                name="tabular_name_unique",
            ),
            models.UniqueConstraint(fields=["warehouse", "location"], name="tabular_location_unique"),
            models.UniqueConstraint(fields=["warehouse", "uuid"], name="tabular_uuid_unique"),
            models.CheckConstraint(
                condition=models.Q(kind__in=["table", "view", "generic-table"]), name="tabular_kind_known"
            ),
            models.CheckConstraint(
                condition=models.Q(deleted_at__isnull=True, deletion__isnull=True)
                | models.Q(deleted_at__isnull=False, deletion__isnull=False),
                name="tabular_deleted_by_a_deletion",
            ),
        ]
        indexes = [
            models.Index(fields=["deletion", "id"], condition=models.Q(deletion__isnull=False), name="tabular_deleted"),
            models.Index(
                fields=["warehouse", "-deleted_at", "-uuid"],
                condition=models.Q(deleted_at__isnull=False),
                name="tabular_deleted_newest",
            ),
            models.Index(
                fields=["warehouse", "location"],
                opclasses=["uuid_ops", "text_pattern_ops"],
                name="tabular_location_prefix",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"


class TabularDocument(models.Model):
    """The current metadata as it is sent to clients; see catalog.documents for the format of `content`."""

    tabular = models.OneToOneField(Tabular, on_delete=models.CASCADE, primary_key=True)
    version = models.BigIntegerField()
    content = models.BinaryField()
    crc = models.BigIntegerField()
    length = models.BigIntegerField()

    class Meta:
        db_table = "tabular_document"

    def __str__(self) -> str:
        return f"{self.tabular_id} version {self.version}"


TABULAR = Shape(Tabular, "t")
EVENT_OF_KIND = "replace(initcap(t.kind), '-', '')"
"""SQL for what a row `t` is called in the types of events, such as `GenericTable`."""
HELD = """
    select n.lineage from tabular t join namespace n on n.id = t.namespace_id where t.id = %s::text::uuid for key share
"""
"""Keeps one from being deleted until the transaction ends; returns the namespaces above it."""
MOVED: Final = """
    select 1 from {places} p
    left join namespace n on n.id = p.namespace_id and n.path_key = p.path_key and n.deleted_at is null
    left join tabular t on t.namespace_id = p.namespace_id and t.name_key = p.name_key and t.deleted_at is null
    where n.id is null or t.id is distinct from p.tabular_id
"""
"""For the queries of other apps: those of `places` whose namespace or table is not there any more, or another one.

`tabular_id` is null for a name that was free.
"""
_FIND = f"""
    select {TABULAR.columns}, {NAMESPACE_COLUMNS} from namespace n
    join tabular t on t.namespace_id = n.id and t.deleted_at is null
    join {WITH_PROJECT} on w.id = n.warehouse_id
    where n.warehouse_id = %s and n.path_key = %s and n.deleted_at is null and t.name_key = %s
"""  # noqa: S608 names of our own columns
_LISTED = """
    select name, uuid, protection is not null, name_key from tabular
    where namespace_id = %(namespace)s and kind = %(kind)s and deleted_at is null and name_key > %(after)s {filter}
    order by name_key limit %(limit)s
"""
_WITH_DOCUMENT = f"""
    select {TABULAR.columns}, case when d.length <= coalesce(%s, d.length) then d.content end, d.crc, d.length
    from tabular t join tabular_document d on d.tabular_id = t.id
    where t.id = %s and t.deleted_at is null
"""  # noqa: S608 names of our own columns
_KIND = "select kind from tabular where namespace_id = %s and name_key = %s and deleted_at is null"
_ADD = """
    with added as (
        insert into tabular (id, warehouse_id, namespace_id, kind, name, name_key, uuid, location, metadata_location,
                             version, created_at, updated_at)
        values (%s, %s, %s, %s, %s, %s, %s, %s, %s, 1, now(), now()) returning id
    )
    insert into tabular_document (tabular_id, version, content, crc, length)
    select id, 1, %s, %s, %s from added
"""
ADDED = """
    added as (
        insert into tabular (id, warehouse_id, namespace_id, kind, name, name_key, uuid, location, metadata_location,
                             version, created_at, updated_at)
        select id, warehouse_id, namespace_id, kind, name, name_key, uuid, location, metadata_location, 1, now(), now()
        from placed order by namespace_id, name_key
        on conflict do nothing returning id
    ),
    documented as (
        insert into tabular_document (tabular_id, version, content, crc, length)
        select p.id, 1, p.content, p.crc, p.length from placed p join added a on a.id = p.id
    )
"""
"""SQL for a statement that adds several: the rows of `placed`, a member of its `with`, as far as their names are free.

In the order of the names, so that two such statements never wait for each other.
"""
REMOVED = """
    documents as (delete from tabular_document d using {rows} as live where d.tabular_id = live.id),
    reports as (delete from metrics_report r using {rows} as live where r.tabular_id = live.id),
    generic as (delete from generic_table g using {rows} as live where g.tabular_id = live.id),
    removed as (delete from tabular t using {rows} as live where t.id = live.id returning t.id)
"""
"""SQL for a statement that removes several: the `rows` of a member of its `with`, which has their ids."""
_REMOVE = f"""
    with found as (select id from tabular where id = %s and deleted_at is null), {REMOVED.format(rows="found")}
    select id from removed
"""  # noqa: S608 text of our own
_MOVE = f"""
    with moved as (
        update tabular set version = version + 1, location = %s, metadata_location = %s, updated_at = now()
        where id = %s and version = %s and deleted_at is null
            and {CONTRACTS.format(warehouse="tabular.warehouse_id")} = %s
        returning id, version
    )
    update tabular_document d set version = moved.version, content = %s, crc = %s, length = %s
    from moved where d.tabular_id = moved.id
    returning d.version
"""  # noqa: S608 text of our own
