"""Records changes of several requests, as `change_recording` does one, as a part of one statement with the changes.

Its parts stand in a `with` list: ASKED, the caller's own `held` with a column `g` of the groups that are carried out,
then RECORDED; ALL_REMEMBERED must be selected. A group with a row (n, g) in `unusable_keys` must not be in `held`: the
request of change n has used its key before, or uses it elsewhere at this moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lakewarden.audit.entries import AUDITED, user_agent_of
from lakewarden.context import RequestContext
from lakewarden.events.change_recording import Change
from lakewarden.idempotency import batch
from lakewarden.idempotency.batch import ALL_REMEMBERED, ASKED, KeyedChange
from lakewarden.ids import new_id
from lakewarden.prepared_statements import rows_of

__all__ = ["ALL_REMEMBERED", "ASKED", "RECORDED", "GroupedChange", "parameters"]


@dataclass(frozen=True, slots=True)
class GroupedChange:
    """A change of `context`'s request; `group` is what it happens with, or does not happen."""

    group: int
    change: Change
    context: RequestContext


RECORDED: Final = f"""
    changes as materialized (
        select c.* from jsonb_to_recordset(%(changes)s::jsonb)
            as c(n int, g int, actor text, role text, type text, object_type text, object_id text, project_id text,
                 request_id text, user_agent text, event uuid, data jsonb)
        join held using (g)
    ),
    {AUDITED},
    announced as (
        insert into outbox_event (created_at, id, type, project_id, object_type, object_id, actor, assumed_role,
                                  request_id, data)
        select now(), event, type, project_id, object_type, object_id, actor, role, request_id, data
        from changes order by n
    ),
    {batch.REMEMBERED}
"""  # noqa: S608 constants


def parameters(changes: Sequence[GroupedChange]) -> dict[str, object]:
    """What the parts are executed with; change n is the nth of them, from 1."""
    keyed = [
        KeyedChange(
            number,
            each.group,
            each.context.caller.id,
            each.context.idempotency,
            each.change.object_type,
            each.change.object_id,
            each.change.data,
        )
        for number, each in enumerate(changes, start=1)
        if each.context.idempotency is not None
    ]
    rows = [_row(number, each) for number, each in enumerate(changes, start=1)]
    return batch.parameters(keyed) | {"changes": rows_of(rows)}


def _row(number: int, grouped: GroupedChange) -> dict[str, object]:
    change, context = grouped.change, grouped.context
    return {
        "n": number,
        "g": grouped.group,
        "actor": context.caller.id,
        "role": context.caller.assumed_role or "",
        "type": change.type,
        "object_type": change.object_type,
        "object_id": change.object_id,
        "project_id": change.project_id,
        "request_id": context.request_id,
        "user_agent": user_agent_of(context.user_agent),
        "event": new_id(),
        "data": change.data,
    }
