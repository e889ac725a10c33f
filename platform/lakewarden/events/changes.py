"""Records a change: its audit row and its outbox event, in the transaction of the change itself."""

from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from lakewarden.audit.models import AuditEntry
from lakewarden.context import RequestContext
from lakewarden.events.models import OutboxEvent
from lakewarden.idempotency.records import remember
from lakewarden.ids import new_id


@dataclass(frozen=True, slots=True)
class Change:
    """`type` names the event in lowerCamelCase (createTable); `data` holds names and ids, never secrets."""

    type: str
    object_type: str
    object_id: str
    project_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


def record(change: Change, context: RequestContext) -> None:
    """Write both rows, and the outcome for the caller's idempotency key.

    Raises TransactionManagementError outside a transaction: a change is never half recorded.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(f"{change.type} was recorded outside its transaction")
    remember(context, object_type=change.object_type, object_id=change.object_id, data=change.data)
    AuditEntry.objects.create(
        actor=context.actor.id,
        action=change.type,
        object_type=change.object_type,
        object_id=change.object_id,
        project_id=change.project_id,
        outcome="done",
        request_id=context.request_id,
        user_agent=context.user_agent[:256],
        details=change.data,
    )
    OutboxEvent.objects.create(
        id=new_id(),
        type=change.type,
        project_id=change.project_id,
        object_type=change.object_type,
        object_id=change.object_id,
        actor=context.actor.id,
        request_id=context.request_id,
        data=change.data,
    )
