"""Completes deletions: removes rows, rights and, if requested, files when the time fixed at the drop has passed.

Run by a worker, and safe to repeat at any point: the beginning is committed first, then each batch is one transaction
that finds what is left.
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC
from uuid import UUID

from django.db import transaction
from procrastinate.contrib.django import app

from catalog.models import Deletion, Tabular, occupied_locations
from catalog.models.tabular import EVENT_OF_KIND
from catalog.services import locations
from catalog.services.deletion import undrop
from catalog.services.namespaces import lock_tree
from lakewarden.authz.actions import ObjectType
from lakewarden.authz.ledger import grants as ledger
from lakewarden.context import SYSTEM, Caller, RequestContext
from lakewarden.events.bulk_change_recording import record_rows
from lakewarden.prepared_statements import execute, fetch
from lakewarden.storage.places import outermost
from lakewarden.tasks import control, purge
from lakewarden.tasks.attempts import Attempt, Postponed, Retries, attempt
from lakewarden.tasks.queues import SOFT_DELETION
from lakewarden.tasks.scope import Entity, Scope

logger = logging.getLogger(__name__)

BATCH = 500


@app.task(name="expire_deletion", queue=SOFT_DELETION, retry=Retries())
def expire_deletion(deletion_id: str, task_id: str | None = None) -> int:
    """Remove the objects of a deletion; returns how many were removed.

    An object that was restored in the meantime is not an error; if it is too early, the task is scheduled again.
    """
    removed = 0
    with attempt(task_id) as run:
        run.heartbeat()
        removed = _remove_all(UUID(deletion_id), run)
        run.message = f"{removed} objects removed."
    logger.info("deletion %s: %d objects were removed permanently", deletion_id, removed)
    return removed


def undo_when_cancelled() -> None:
    """Register that cancelling a task of the queue restores the objects of its deletion; called once, at the start."""
    control.on_cancel(SOFT_DELETION, hold=_hold_tree, undo=_bring_back)


def _hold_tree(scope: Scope) -> None:
    """Undropping takes the tree's lock before the task's, so cancelling does the same."""
    if scope.warehouse_id is not None:
        lock_tree(scope.warehouse_id, exclusive=True)


def _bring_back(task_id: UUID, context: RequestContext) -> None:
    """Restores the deletion whose task is cancelled: without the task nothing else would ever complete it."""
    for deletion in Deletion.objects.filter(task_id=task_id):
        undrop.bring_back(deletion, context)


def _remove_all(deletion_id: UUID, run: Attempt) -> int:
    """Until nothing is left; returns how many objects were removed."""
    removed = 0
    ((total,),) = fetch(_COUNT, [deletion_id, deletion_id])
    for count in batches(deletion_id, RequestContext(Caller(SYSTEM), str(run.task_id))):
        removed += count
        run.details["objects-removed"] = removed
        run.heartbeat(progress=min(removed / max(total, 1), 1.0))
    return removed


def batches(deletion_id: UUID, context: RequestContext) -> Iterator[int]:
    """Remove everything, earlier drops inside of it first; yields how many objects each transaction removed.

    Raises Postponed before its time. Nothing is removed before the beginning is committed.
    """
    if not _begin(deletion_id):
        return
    for (inner,) in fetch(_INSIDE, {"id": deletion_id}):
        yield from batches(inner, context)
    while count := _remove_batch(deletion_id, context):
        yield count


def _begin(deletion_id: UUID) -> bool:
    """Record that nothing of it can be restored any more; False when it was completed or restored already."""
    with transaction.atomic():
        due = fetch(_DUE, [deletion_id])
        if not due:
            return False
        at, is_due = due[0]
        if not is_due:
            raise Postponed(f"It can be restored until {at.astimezone(UTC).isoformat()}: nothing was removed", at)
        execute(_BEGIN, [deletion_id])
        return True


def _remove_batch(deletion_id: UUID, context: RequestContext) -> int:
    """Remove the next objects in a transaction of their own; returns how many, 0 when nothing is left.

    The row of the deletion is locked, so that two workers never remove the same.
    """
    with transaction.atomic():
        rows = Deletion.objects.select_for_update(of=("self",)).select_related("warehouse")
        deletion = rows.filter(id=deletion_id).first()
        if deletion is None:
            return 0
        removed = _remove_tabulars(deletion, context) or _remove_namespaces(deletion, context)
        if not removed:
            deletion.delete()
        return removed


def _remove_tabulars(deletion: Deletion, context: RequestContext) -> int:
    found = list(
        Tabular.everything.filter(deletion=deletion)
        .select_related("namespace")
        .order_by("id")
        .only("id", "uuid", "kind", "name", "location", "namespace__path", "namespace__properties")[:BATCH]
    )
    if not found:
        return 0
    ids = [tabular.id for tabular in found]
    # with the namespace that they were in, which decides who may register them again
    owned_by = ledger.owners_of([str(each) for each in ids])
    places = occupied_locations.release(ids, owned_by=owned_by, access=deletion.warehouse.last_access)
    if deletion.with_files:
        for tabular in found:
            for location in outermost(each.location for each in places if each.owner == tabular.id):
                _request_purge(tabular, location, deletion)
    _record(_EXPIRED_TABULARS, ids, deletion, context)
    Tabular.everything.filter(id__in=ids).delete()
    for kind in Tabular.Kind:
        ledger.forget_objects(ObjectType(kind), [str(each.id) for each in found if each.kind == kind])
    return len(ids)


def _request_purge(tabular: Tabular, location: str, deletion: Deletion) -> None:
    warehouse = deletion.warehouse
    purge.request(
        warehouse.storage_profile,
        location,
        scope=Scope(warehouse.project_id, warehouse.id),
        entity=Entity(tabular.kind, str(tabular.uuid), (*tabular.namespace.path, tabular.name)),
        owner=str(tabular.id),
        not_before=deletion.purge_not_before,
        within=_folder_that_stays(tabular, location, deletion),
    )


def _folder_that_stays(tabular: Tabular, location: str, deletion: Deletion) -> str:
    """The folder of a namespace that is removed too is not kept."""
    warehouse = deletion.warehouse
    if deletion.object_type == ObjectType.NAMESPACE:
        return warehouse.location
    return locations.folder_that_stays(warehouse, tabular.namespace, location)


def _remove_namespaces(deletion: Deletion, context: RequestContext) -> int:
    """The deepest first, so that none is left without its parent."""
    ids = [identifier for (identifier,) in fetch(_DEEPEST, [deletion.id, BATCH])]
    if ids:
        _record(_EXPIRED_NAMESPACES, ids, deletion, context)
        execute("delete from namespace where id = any(%s::uuid[])", [ids])
        ledger.forget_objects(ObjectType.NAMESPACE, [str(identifier) for identifier in ids])
    return len(ids)


def _record(changed: str, ids: Sequence[UUID], deletion: Deletion, context: RequestContext) -> None:
    if deletion.is_final:
        return  # the event of its drop has already said that it is permanent
    parameters = {"ids": list(ids), "purge": deletion.with_files, "deletion": str(deletion.id)}
    record_rows(changed, parameters, project_id=deletion.warehouse.project_id, context=context)


# not now(), which is when the transaction began: it may have waited since
_DUE = """
    with locked as materialized (select expires_at, begun_at from deletion where id = %s for update)
    select expires_at, begun_at is not null or expires_at <= clock_timestamp() from locked
"""
_BEGIN = "update deletion set begun_at = clock_timestamp() where id = %s and begun_at is null"
_COUNT = """
    select (select count(*) from tabular where deletion_id = %s)
         + (select count(*) from namespace where deletion_id = %s)
"""
# objects that were dropped in these namespaces earlier: a tree never expires before what is in it
_INSIDE = """
    select t.deletion_id from namespace n join tabular t on t.namespace_id = n.id
    where n.deletion_id = %(id)s and t.deletion_id <> %(id)s
    union
    select c.deletion_id from namespace n join namespace c on c.parent_id = n.id
    where n.deletion_id = %(id)s and c.deletion_id <> %(id)s
"""
_DEEPEST = """
    select id from namespace where deletion_id = %s order by cardinality(path) desc, id limit %s for update
"""
_EXPIRED_TABULARS = f"""
    select 'expire' || {EVENT_OF_KIND}, t.kind, t.uuid::text, jsonb_build_object(
        'name', t.name, 'namespace', to_jsonb(n.path), 'warehouse-id', t.warehouse_id::text,
        'purge', %(purge)s::boolean, 'deletion-id', %(deletion)s::text)
    from tabular t join namespace n on n.id = t.namespace_id where t.id = any(%(ids)s::uuid[]) order by t.id
"""  # noqa: S608 text of our own
_EXPIRED_NAMESPACES = """
    select 'expireNamespace', 'namespace', n.id::text, jsonb_build_object(
        'namespace', to_jsonb(n.path), 'warehouse-id', n.warehouse_id::text,
        'purge', %(purge)s::boolean, 'deletion-id', %(deletion)s::text)
    from namespace n where n.id = any(%(ids)s::uuid[]) order by cardinality(n.path) desc, n.id
"""
