"""Drops namespaces, empty ones or with everything below them; permanently, or so that everything can be restored.

Set-based: however many tables there are below, only their number is read.
"""

from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from catalog.access import namespace_chain
from catalog.models import Deletion, Namespace
from catalog.models.tabular import EVENT_OF_KIND
from catalog.services.deletion.drop import DropOptions, Dropped, begin, payload_of
from catalog.services.deletion.expire import batches
from catalog.services.namespaces import change_of, lock_tree
from catalog.services.protection import ensure_unprotected
from catalog.tabular_types import word_of
from lakewarden import config
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.context import RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import NamespaceNotEmpty, NoSuchNamespace, Protected
from lakewarden.events.bulk_change_recording import record_rows
from lakewarden.events.change_recording import Change, record
from lakewarden.prepared_statements import execute, fetch
from lakewarden.tasks import scheduling

MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class _Inside:
    """How many live objects a namespace contains, and how many dropped ones that are not removed yet.

    `restorable` counts the dropped ones that can still be restored, the last of them `until`.
    """

    namespaces: int
    tabulars: int
    dropped: int
    restorable: int
    until: datetime | None

    @property
    def live(self) -> int:
        return self.namespaces + self.tabulars


@dataclass(frozen=True, slots=True)
class Preview:
    """What a recursive drop would remove. `protected` are paths of objects because of which it would be refused."""

    namespaces: int
    tabulars: int
    protected: list[str]


def preview(granted: Granted[Namespace]) -> Preview:
    """Count what lies below, for somebody who may drop it; nothing is locked, so it may change until the drop."""
    inside = _inside(granted.target)
    rows = fetch(_PROTECTED, {"id": granted.target.id, "limit": MOST_NAMED})
    return Preview(inside.namespaces, inside.tabulars, [".".join(path) for _, path, _ in rows])


def drop(granted: Granted[Namespace], options: DropOptions) -> None:
    """Drop a namespace; with `recursive` everything below it too.

    In a warehouse with soft deletion everything is kept, and can be restored as a whole. Otherwise it is removed, at
    once or (if there are many objects below) by a task, which callers of the catalog do not notice. Raises
    NamespaceNotEmpty, Protected (naming what is protected below), NoSuchNamespace when it has been dropped or moved.
    """
    known = granted.target
    with changing():
        lock_tree(known.warehouse_id, exclusive=True)
        _lock_rows(known)
        if not Namespace.objects.filter(id=known.id, lineage=known.lineage).exists():
            raise NoSuchNamespace(f"Namespace does not exist: {known}")
        inside = _inside(known)
        if not options.force:
            ensure_unprotected(known)
        if not options.recursive:
            _ensure_empty(known, inside, options)
        elif not options.force:
            _ensure_unprotected_below(known)
        if options.is_soft(known.warehouse):
            _set_aside(granted, options, inside)
        elif inside.live or inside.dropped:
            _remove_tree(granted, options, inside)
        else:
            record(change(granted, options, {}), granted.context)
            execute("delete from namespace where id = %s", [known.id])
            ledger.forget_object(namespace_chain(known)[-1])


def _lock_rows(namespace: Namespace) -> None:
    """Locks the rows in id order, as commits do; other changes of them either finish before, or find them removed."""
    fetch(_LOCK_NAMESPACES, {"id": namespace.id})
    fetch(_LOCK_TABULARS, {"id": namespace.id})


def _inside(namespace: Namespace) -> _Inside:
    return _Inside(*fetch(_INSIDE, {"id": namespace.id})[0])


def _ensure_empty(namespace: Namespace, inside: _Inside, options: DropOptions) -> None:
    """What can still be restored counts: whoever wants it back must not lose the namespace it lies in by accident."""
    if inside.live:
        raise NamespaceNotEmpty(
            f"Namespace {namespace} is not empty. Drop what it holds first (tables and views: {inside.tabulars}, "
            f"namespaces: {inside.namespaces}), or all at once with recursive=true"
        )
    is_soft = options.is_soft(namespace.warehouse)
    if inside.restorable or (inside.dropped and not is_soft):
        raise _not_removed(namespace, inside, is_soft=is_soft)


def _not_removed(namespace: Namespace, inside: _Inside, *, is_soft: bool) -> NamespaceNotEmpty:
    rows = fetch(_RESTORABLE, {"id": namespace.id, "limit": MOST_NAMED})
    if not rows:
        return NamespaceNotEmpty(
            f"Namespace {namespace} is not empty yet: {inside.dropped} dropped objects in it are being removed. Try "
            "again later, or drop it with recursive=true"
        )
    named = ", ".join(f"{word_of(kind)} {'.'.join(path)} until {until.isoformat()}" for kind, path, until, _ in rows)
    rest = f" and {rows[0][3] - len(rows)} more" if rows[0][3] > len(rows) else ""
    way = "drop all of it, to be restored together, with recursive=true"
    if not is_soft:
        way = "drop everything permanently with recursive=true and force=true"
    return NamespaceNotEmpty(
        f"Namespace {namespace} is not empty, dropped objects in it can be restored: {named}{rest}. Restore them, wait "
        f"for that, or {way}"
    )


def _ensure_unprotected_below(namespace: Namespace) -> None:
    """Raises Protected, which names the first of them by path."""
    rows = fetch(_PROTECTED, {"id": namespace.id, "limit": MOST_NAMED})
    if rows:
        more = rows[0][2] - len(rows)
        named = ", ".join(f"{word_of(kind)} {'.'.join(path)}" for kind, path, _ in rows)
        rest = f" and {more} more" if more else ""
        raise Protected(
            f"Namespace {namespace} contains objects that are protected from deletion: {named}{rest}. "
            "Remove their protection first, or drop it with force=true"
        )


def _set_aside(granted: Granted[Namespace], options: DropOptions, inside: _Inside) -> None:
    namespace = granted.target
    deletion = begin(
        _named(namespace),
        namespace.warehouse,
        by=granted.context.caller.id,
        with_files=options.with_files,
        not_before=inside.until,  # objects that were dropped in it before stay restorable until their own time is over
    )
    payload = payload_of(deletion)
    record(change(granted, options, {**payload, **_counted(inside)}), granted.context)
    _record_below(namespace, granted.context, payload)
    _mark(namespace, deletion)


def _remove_tree(granted: Granted[Namespace], options: DropOptions, inside: _Inside) -> None:
    namespace = granted.target
    if inside.restorable and not options.force:
        raise _not_removed(namespace, inside, is_soft=False)
    is_tracked = inside.live + inside.dropped >= config.current().deletion.tracked_from
    deletion = begin(
        _named(namespace),
        namespace.warehouse,
        by=granted.context.caller.id,
        with_files=options.with_files,
        is_final=True,
        is_tracked=is_tracked,
        purge_not_before=options.purge_not_before(),
    )
    payload = {"purge": deletion.with_files, "soft": False, "force": options.force, "deletion-id": str(deletion.id)}
    record(change(granted, options, {**payload, **_counted(inside)}), granted.context)
    _record_below(namespace, granted.context, payload)
    older = [identifier for (identifier,) in fetch(_OLDER, {"id": namespace.id})]
    ended = fetch(_END_NOW, {"ids": older, "purge": options.with_files})
    scheduling.hurry([task_id for (task_id,) in ended if task_id is not None])
    _mark(namespace, deletion)
    if not is_tracked:
        sum(batches(deletion.id, granted.context))  # all of it, in this transaction


def _named(namespace: Namespace) -> Dropped:
    return Dropped("namespace", namespace.id, namespace.path)


def _counted(inside: _Inside) -> dict[str, object]:
    return {"namespaces-below": inside.namespaces, "tables-and-views": inside.tabulars}


def _mark(namespace: Namespace, deletion: Deletion) -> None:
    """Remove the namespace and everything below it: the tables first, because they are found by the namespaces."""
    parameters = {"id": namespace.id, "deletion": deletion.id, "at": deletion.deleted_at}
    execute(_MARK_TABULARS, parameters)
    execute(_MARK_NAMESPACES, parameters)


def change(granted: Granted[Namespace], options: DropOptions, payload: dict[str, object]) -> Change:
    """The audit entry and event of the drop."""
    return change_of("dropNamespace", granted.target, recursive=options.recursive, **payload)


def _record_below(namespace: Namespace, context: RequestContext, payload: dict[str, object]) -> None:
    parameters = {"id": namespace.id, "payload": Jsonb(payload)}
    record_rows(_DROPPED, parameters, project_id=namespace.warehouse.project_id, context=context)


_LIVE = """
    with recursive below(id) as (
        select id from namespace where id = %(id)s::uuid and deleted_at is null
        union all
        select n.id from namespace n join below b on n.parent_id = b.id where n.deleted_at is null
    )
"""
_ALL = """
    with recursive below(id) as (
        select id from namespace where id = %(id)s::uuid
        union all
        select n.id from namespace n join below b on n.parent_id = b.id
    )
"""
_RESTORABLE_DELETION = """
    deletion d on d.id = f.deletion_id and not d.is_final and d.begun_at is null and d.expires_at > clock_timestamp()
"""
_LOCK_NAMESPACES = f"""{_LIVE}, locked as materialized (
        select n.id from namespace n join below b on b.id = n.id order by n.id for update of n
    )
    select count(*) from locked
"""  # noqa: S608 text of our own
_LOCK_TABULARS = f"""{_LIVE}, locked as materialized (
        select t.id from tabular t join below b on t.namespace_id = b.id
        where t.deleted_at is null order by t.id for update of t
    )
    select count(*) from locked
"""  # noqa: S608 text of our own
_INSIDE = f"""{_ALL}, found as (
        select 'n' as kind, n.deletion_id from below b join namespace n on n.id = b.id where n.id <> %(id)s::uuid
        union all
        select 't', t.deletion_id from below b join tabular t on t.namespace_id = b.id
    )
    select count(*) filter (where kind = 'n' and f.deletion_id is null),
           count(*) filter (where kind = 't' and f.deletion_id is null),
           count(f.deletion_id), count(d.id), max(d.expires_at)
    from found f left join {_RESTORABLE_DELETION}
"""  # noqa: S608 text of our own
_RESTORABLE = f"""{_ALL}, found as (
        select 'namespace' as kind, n.path, n.deletion_id
        from below b join namespace n on n.id = b.id where n.id <> %(id)s::uuid
        union all
        select t.kind, n.path || t.name, t.deletion_id
        from below b join namespace n on n.id = b.id join tabular t on t.namespace_id = n.id
    )
    select f.kind, f.path, d.expires_at, count(*) over () from found f join {_RESTORABLE_DELETION}
    order by f.path, f.kind limit %(limit)s
"""  # noqa: S608 text of our own
_PROTECTED = f"""{_LIVE}, found as (
        select 'namespace' as kind, n.path from below b join namespace n on n.id = b.id
        where n.id <> %(id)s::uuid and n.protection is not null
        union all
        select t.kind, n.path || t.name from below b join namespace n on n.id = b.id
        join tabular t on t.namespace_id = n.id where t.deleted_at is null and t.protection is not null
    )
    select kind, path, count(*) over () from found order by path, kind limit %(limit)s
"""  # noqa: S608 text of our own
_DROPPED = f"""
    select type, object_type, object_id, data || %(payload)s::jsonb from ({_LIVE}
        select 'dropNamespace' as type, 'namespace' as object_type, n.id::text as object_id,
               jsonb_build_object('namespace', to_jsonb(n.path), 'warehouse-id', n.warehouse_id::text) as data
        from below b join namespace n on n.id = b.id where n.id <> %(id)s::uuid
        union all
        select 'drop' || {EVENT_OF_KIND}, t.kind, t.uuid::text, jsonb_build_object(
            'name', t.name, 'namespace', to_jsonb(n.path), 'warehouse-id', t.warehouse_id::text)
            || case t.kind when 'generic-table' then jsonb_build_object('location', t.location)
               else jsonb_build_object('metadata-location', t.metadata_location, 'version', t.version) end
        from below b join namespace n on n.id = b.id join tabular t on t.namespace_id = n.id
        where t.deleted_at is null
    ) dropped
"""  # noqa: S608 text of our own
_OLDER = f"""{_ALL}, older(id) as (
        select n.deletion_id from below b join namespace n on n.id = b.id
        union
        select t.deletion_id from below b join tabular t on t.namespace_id = b.id
    )
    select d.id from deletion d join older o on o.id = d.id order by d.id for update of d
"""  # noqa: S608 text of our own
# each of them has a task of its own, which is run now; the removal of the tree also finds their rows
_END_NOW = """
    update deletion set expires_at = clock_timestamp(), with_files = %(purge)s::boolean
    where id = any(%(ids)s::uuid[]) and begun_at is null and expires_at > clock_timestamp() and not is_final
    returning task_id
"""
_MARK_TABULARS = f"""{_LIVE}
    update tabular t set deleted_at = %(at)s, deletion_id = %(deletion)s
    from below b where t.namespace_id = b.id and t.deleted_at is null
"""  # noqa: S608 text of our own
_MARK_NAMESPACES = f"""{_LIVE}
    update namespace n set deleted_at = %(at)s, deletion_id = %(deletion)s from below b where n.id = b.id
"""  # noqa: S608 text of our own
