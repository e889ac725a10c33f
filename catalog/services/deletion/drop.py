"""What all drops have in common: the options of the request, and the beginning of a deletion that can be undone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from catalog.models import Deletion
from catalog.services.deletion.expire import expire_deletion
from lakewarden import config
from lakewarden.context import PrincipalId
from lakewarden.ids import new_id
from lakewarden.prepared_statements import fetch
from lakewarden.tasks import scheduling
from lakewarden.tasks.scope import Entity, Scope
from tenants.models import Warehouse


@dataclass(frozen=True, slots=True)
class DropOptions:
    """`purge`: whether files are removed too, None if not stated; `force` overrides protection and soft deletion."""

    purge: bool | None = None
    force: bool = False
    recursive: bool = False

    @property
    def with_files(self) -> bool:
        return self.purge is not False

    def is_soft(self, warehouse: Warehouse) -> bool:
        return not self.force and warehouse.deletion_profile.expiration_s is not None

    def purge_not_before(self) -> datetime | None:
        """When the files may be removed if the request did not ask for it explicitly; None means immediately.

        Some engines do not send `purgeRequested`, drop a table and register its newest metadata file again.
        """
        grace = config.current().deletion.purge_grace_s
        if self.purge or not grace:
            return None
        at: datetime = fetch("select clock_timestamp() + make_interval(secs => %s::int)", [grace])[0][0]
        return at


@dataclass(frozen=True, slots=True)
class Dropped:
    """The object that a request names: `type` is namespace, table or view."""

    type: str
    id: UUID
    path: Sequence[str]


def begin(
    dropped: Dropped,
    warehouse: Warehouse,
    *,
    by: PrincipalId,
    with_files: bool,
    not_before: datetime | None = None,
    is_final: bool = False,
    is_tracked: bool = True,
    purge_not_before: datetime | None = None,
) -> Deletion:
    """Create the deletion and the task that completes it, in the transaction of the drop.

    It expires when the warehouse's time has passed, but not before `not_before`; a permanent one expires at once. One
    that is not tracked has no task: the caller removes all of it.
    """
    seconds = 0 if is_final else warehouse.deletion_profile.expiration_s or 0
    ((now, expires_at),) = fetch(_TIMES, {"seconds": seconds, "not_before": not_before})
    identifier = new_id()
    task_id = _add_task(identifier, dropped, warehouse, at=expires_at) if is_tracked else None
    return Deletion.objects.create(
        id=identifier,
        warehouse=warehouse,
        object_type=dropped.type,
        object_id=dropped.id,
        path=list(dropped.path),
        deleted_at=now,
        expires_at=expires_at,
        deleted_by=by,
        with_files=with_files,
        is_final=is_final,
        purge_not_before=purge_not_before,
        task_id=task_id,
    )


def _add_task(deletion_id: UUID, dropped: Dropped, warehouse: Warehouse, *, at: datetime) -> UUID:
    return scheduling.add(
        expire_deletion,
        {"deletion_id": str(deletion_id)},
        scope=Scope(warehouse.project_id, warehouse.id),
        entity=Entity(dropped.type, str(dropped.id), tuple(dropped.path)),
        lock=f"deletion:{deletion_id}",
        scheduled_for=at,
    )


def payload_of(deletion: Deletion) -> dict[str, object]:
    """The data about the deletion in the events of a drop."""
    return {
        "purge": deletion.with_files,
        "soft": not deletion.is_final,
        "expires-at": deletion.expires_at.isoformat(),
        "deletion-id": str(deletion.id),
    }


# not now(), which is when the transaction began: the time to restore would be shorter by the drop's wait for locks
_TIMES = """
    select at, greatest(at + make_interval(secs => %(seconds)s::double precision), %(not_before)s::timestamptz)
    from clock_timestamp() at
"""
