"""Records changes of several requests, as `change_recording` does one, as a part of one statement with the changes.

Its parts stand in a `with` list: ASKED, the caller's own `held` with a column `g` of the groups that are carried out,
then RECORDED; ALL_REMEMBERED must be selected. A group with a row (n, g) in `unusable_keys` must not be in `held`: the
request of change n has used its key before, or uses it elsewhere at this moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from psycopg.types.json import Jsonb

from lakewarden.audit.entries import AUDITED, user_agent_of
from lakewarden.context import RequestContext
from lakewarden.events.change_recording import Change
from lakewarden.idempotency import batch
from lakewarden.idempotency.batch import ALL_REMEMBERED, ASKED, KeyedChange
from lakewarden.ids import new_id

__all__ = ["ALL_REMEMBERED", "ASKED", "RECORDED", "GroupedChange", "parameters"]


@dataclass(frozen=True, slots=True)
class GroupedChange:
    """A change of `context`'s request; `group` is what it happens with, or does not happen."""

    group: int
    change: Change
    context: RequestContext


RECORDED: Final = f"""
    changes as materialized (
        select c.* from unnest(%(change_group)s::int[], %(change_actor)s::text[], %(change_role)s::text[],
                    %(change_type)s::text[], %(change_object_type)s::text[], %(change_object_id)s::text[],
                    %(change_project)s::text[], %(change_request)s::text[], %(change_agent)s::text[],
                    %(change_event)s::uuid[], %(change_data)s::jsonb[]) with ordinality
            as c(g, actor, role, type, object_type, object_id, project_id, request_id, user_agent, event, data, n)
        join held using (g)
    ),
    {AUDITED},
    announced as (
        insert into outbox_event (created_at, id, type, project_id, object_type, object_id, actor, request_id, data)
        select now(), event, type, project_id, object_type, object_id, actor, request_id, data from changes order by n
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
    return batch.parameters(keyed) | {
        "change_group": [each.group for each in changes],
        "change_actor": [each.context.caller.id for each in changes],
        "change_role": [each.context.caller.assumed_role or "" for each in changes],
        "change_type": [each.change.type for each in changes],
        "change_object_type": [each.change.object_type for each in changes],
        "change_object_id": [each.change.object_id for each in changes],
        "change_project": [each.change.project_id for each in changes],
        "change_request": [each.context.request_id for each in changes],
        "change_agent": [user_agent_of(each.context.user_agent) for each in changes],
        "change_event": [new_id() for _ in changes],
        "change_data": [Jsonb(each.change.data) for each in changes],
    }
