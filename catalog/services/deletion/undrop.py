"""Restores dropped objects that have not expired: tables, views, and namespaces with everything dropped with them."""

from collections.abc import Sequence
from datetime import UTC
from uuid import UUID

from django.db import IntegrityError

from catalog.models import Deletion, Namespace, Tabular
from catalog.services.namespaces import lock_tree
from catalog.tabular_types import type_of, word_of
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import AlreadyExists, Conflict, LakewardenError, NoSuchNamespace
from lakewarden.events.bulk_change_recording import record_rows
from lakewarden.events.change_recording import Change, record
from lakewarden.prepared_statements import execute, fetch
from lakewarden.tasks import scheduling

EVENT = "undropTabulars"

Target = Granted[Namespace] | Granted[Tabular]


def undrop(targets: Sequence[Target], *, warehouse_id: UUID, context: RequestContext) -> None:
    """Restore all of them, or none; a namespace with everything that was dropped with it.

    Raises Conflict for an object that has expired or is being removed, or is in a namespace that is dropped itself or
    was moved meanwhile; AlreadyExists when the name is taken; the kind's own 404 for an object that was removed or
    restored meanwhile.
    """
    wanted = [target.target for target in targets]
    namespaces = sorted((each for each in wanted if isinstance(each, Namespace)), key=lambda each: len(each.path))
    tabulars = [each for each in wanted if isinstance(each, Tabular)]
    with changing():
        lock_tree(warehouse_id, exclusive=True)
        open_ones = _lock([each.deletion_id for each in wanted])
        restored: set[UUID] = set()
        for namespace in namespaces:
            if namespace.deletion_id not in restored:
                restored.add(_restore_namespace(namespace, open_ones, context))
        for tabular in tabulars:
            if tabular.deletion_id not in restored:
                restored.add(_restore_tabular(tabular, open_ones, context))


def bring_back(deletion: Deletion, context: RequestContext) -> None:
    """Restore what is left of a deletion whose task is cancelled, in the caller's transaction, also after its time.

    The caller holds the tree's lock already. Raises AlreadyExists and Conflict as `undrop`, except for the time.
    """
    locked = Deletion.objects.select_for_update(of=("self",)).select_related("warehouse").filter(id=deletion.id).first()
    if locked is None:
        return
    if locked.begun_at is not None:
        raise _too_late(locked)
    open_ones: dict[UUID | None, Deletion] = {locked.id: locked}
    if locked.object_type == "namespace":
        namespace = Namespace.everything.get(id=locked.object_id)
        _restore_namespace(namespace, open_ones, context)
    else:
        _restore_tabular(Tabular.everything.get(deletion=locked), open_ones, context)


def _lock(identifiers: Sequence[UUID | None]) -> dict[UUID | None, Deletion]:
    """The deletions that exist and are not permanent, locked so that nothing else completes or restores them.

    Raises Conflict when the time of one is over, or its removal has begun.
    """
    is_late = dict(fetch(_LOCK, [[each for each in identifiers if each is not None]]))
    found = Deletion.objects.filter(id__in=is_late).select_related("warehouse").order_by("id")
    for deletion in found:
        if is_late[deletion.id]:
            raise _too_late(deletion)
    return {each.id: each for each in found}


def _too_late(deletion: Deletion) -> Conflict:
    at = deletion.expires_at.astimezone(UTC).isoformat()
    until = "It was dropped permanently" if deletion.is_final else f"It could be restored until {at}"
    begun = "" if deletion.begun_at is None else ", and its removal has begun"
    return Conflict(f"The {word_of(deletion.object_type)} {deletion} can no longer be restored. {until}{begun}")


def _restore_namespace(known: Namespace, open_ones: dict[UUID | None, Deletion], context: RequestContext) -> UUID:
    deletion = open_ones.get(known.deletion_id)
    namespace = Namespace.everything.filter(id=known.id, deletion=deletion).first() if deletion else None
    if deletion is None or namespace is None:
        raise NoSuchNamespace(f"No dropped namespace {known.id} can be restored")
    _ensure_not_moved(known, namespace)
    if deletion.object_id != namespace.id:
        raise Conflict(
            f"The namespace {namespace} was dropped with {deletion}: restore it instead (namespace "
            f"{deletion.object_id})"
        )
    if namespace.parent_id is not None and not Namespace.objects.filter(id=namespace.parent_id).exists():
        raise Conflict(
            f"The namespace {namespace} cannot be restored: its parent is also dropped: restore that first "
            f"(namespace {namespace.parent_id})"
        )
    if Namespace.objects.filter(warehouse_id=namespace.warehouse_id, path_key=namespace.path_key).exists():
        raise AlreadyExists(f"Cannot restore the namespace {namespace}: another one has that name now")
    data = {"namespace": namespace.path, "warehouse-id": str(namespace.warehouse_id), "deletion-id": str(deletion.id)}
    record(Change(EVENT, "namespace", str(namespace.id), deletion.warehouse.project_id, data), context)
    _restore_rest(deletion, context)
    return deletion.id


def _restore_tabular(known: Tabular, open_ones: dict[UUID | None, Deletion], context: RequestContext) -> UUID:
    deletion = open_ones.get(known.deletion_id)
    rows = Tabular.everything.select_related("namespace")
    tabular = rows.filter(id=known.id, deletion=deletion).first() if deletion else None
    if deletion is None or tabular is None:
        raise _not_there(known)
    _ensure_not_moved(known.namespace, tabular.namespace)
    if tabular.namespace.deletion_id is not None:
        root = Deletion.objects.get(id=tabular.namespace.deletion_id)
        raise Conflict(
            f"The {type_of(tabular).word} {tabular} cannot be restored: its namespace is also dropped: "
            f"restore that first (namespace {root.object_id})"
        )
    taken = AlreadyExists(f"Cannot restore the {type_of(tabular).word} {tabular}: another one has that name now")
    if Tabular.objects.kind_of(tabular.namespace_id, tabular.name_key) is not None:
        raise taken
    data = {
        "name": tabular.name,
        "namespace": tabular.namespace.path,
        "warehouse-id": str(tabular.warehouse_id),
        "deletion-id": str(deletion.id),
    }
    record(Change(EVENT, tabular.kind, str(tabular.uuid), deletion.warehouse.project_id, data), context)
    try:
        _restore_rest(deletion, context)
    except IntegrityError as error:
        raise taken from error
    return deletion.id


def _ensure_not_moved(known: Namespace, namespace: Namespace) -> None:
    """The caller was authorized by the namespace that it was in."""
    if known.lineage != namespace.lineage:
        raise Conflict(f"The namespace {known} was moved to {namespace} in the meantime: check its path and try again")


def _restore_rest(deletion: Deletion, context: RequestContext) -> None:
    """Make all rows of the deletion live, and remove it with its task; records events for all but the named object."""
    named = {"type": deletion.object_type, "named": str(deletion.object_id)}
    parameters = {"deletion": deletion.id, "event": EVENT, **named}
    record_rows(_REST, parameters, project_id=deletion.warehouse.project_id, context=context)
    execute(_LIVE_NAMESPACES, [deletion.id])
    execute(_LIVE_TABULARS, [deletion.id])
    if deletion.task_id is not None:
        scheduling.withdraw(deletion.task_id, reason="Restored")
    Deletion.objects.filter(id=deletion.id).delete()  # the instance keeps its id


def _not_there(tabular: Tabular) -> LakewardenError:
    kind = type_of(tabular)
    return kind.missing(f"No dropped {kind.word} {tabular.uuid} can be restored")


_LOCK = """
    with locked as materialized (
        select id, expires_at, begun_at, is_final from deletion where id = any(%s::uuid[]) order by id for update
    )
    select id, begun_at is not null or expires_at <= clock_timestamp() from locked where not is_final
"""
_LIVE_NAMESPACES = """
    update namespace set deleted_at = null, deletion_id = null, version = version + 1, updated_at = now()
    where deletion_id = %s
"""
_LIVE_TABULARS = "update tabular set deleted_at = null, deletion_id = null, updated_at = now() where deletion_id = %s"
_REST = """
    select * from (
        select %(event)s::text, 'namespace' as object_type, n.id::text as object_id, jsonb_build_object(
            'namespace', to_jsonb(n.path), 'warehouse-id', n.warehouse_id::text, 'deletion-id', %(deletion)s::text)
        from namespace n where n.deletion_id = %(deletion)s::uuid
        union all
        select %(event)s::text, t.kind, t.uuid::text, jsonb_build_object(
            'name', t.name, 'namespace', to_jsonb(n.path), 'warehouse-id', t.warehouse_id::text,
            'deletion-id', %(deletion)s::text)
        from tabular t join namespace n on n.id = t.namespace_id where t.deletion_id = %(deletion)s::uuid
    ) rest where (object_type, object_id) <> (%(type)s::text, %(named)s::text)
"""
