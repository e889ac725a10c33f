"""Records a change: writes its audit row and its outbox event in the transaction of the change."""

from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from psycopg.types.json import Jsonb

from lakewarden.audit.entries import INTO, user_agent_of
from lakewarden.context import RequestContext
from lakewarden.idempotency.outcomes import remember
from lakewarden.ids import new_id
from lakewarden.prepared_statements import execute


@dataclass(frozen=True, slots=True)
class Change:
    """`type` is the event's name in lowerCamelCase (createTable); `data` has names and ids, never secrets."""

    type: str
    object_type: str
    object_id: str
    project_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


def record(change: Change, context: RequestContext) -> None:
    """Write both rows, and the outcome for the request's idempotency key.

    Raises TransactionManagementError outside of a transaction, because a change must never be recorded in part, and
    RepeatedRequest if an earlier request with the same key has made the change.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(f"{change.type} was recorded outside its transaction")
    remember(context, object_type=change.object_type, object_id=change.object_id, data=change.data)
    actor, data = context.caller.id, Jsonb(change.data)
    audited = [
        *(actor, context.caller.assumed_role or "", change.type),
        *(change.object_type, change.object_id, change.project_id),
    ]
    event = [new_id(), change.type, change.project_id, change.object_type, change.object_id]
    execute(
        _RECORD,
        [
            *(*audited, context.request_id, user_agent_of(context.user_agent), data),
            *(*event, actor, context.caller.assumed_role or "", context.request_id, data),
        ],
    )


_RECORD = f"""
    with audited as (
        {INTO}
        values (now(), %s, %s, %s, %s, %s, %s, 'done', %s, %s, %s)
    )
    insert into outbox_event (created_at, id, type, project_id, object_type, object_id, actor, assumed_role,
                              request_id, data)
    values (now(), %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""  # noqa: S608 constants
