"""Records many changes at once, as `change_recording` does one: a query names what changed, without reading it."""

from collections.abc import Mapping

from django.db import transaction

from lakewarden.audit.entries import user_agent_of
from lakewarden.context import RequestContext
from lakewarden.prepared_statements import fetch


def record_rows(changed: str, parameters: Mapping[str, object], *, project_id: str, context: RequestContext) -> int:
    """Write an audit row and an outbox event for each row of `changed`; returns how many there were.

    `changed` is a select of (type, object_type, object_id, data as jsonb) in the order that the events shall have.
    Raises TransactionManagementError outside a transaction: a change is never half recorded.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError("Changes were recorded outside their transaction")
    who = {
        "event_actor": context.caller.id,
        "event_role": context.caller.assumed_role or "",
        "event_request": context.request_id,
        "event_agent": user_agent_of(context.user_agent),
        "event_project": project_id,
    }
    ((count,),) = fetch(_RECORD.format(changed=changed), {**parameters, **who})
    return int(count)


_RECORD = """
    with changed(type, object_type, object_id, data) as materialized ({changed}),
    audited as (
        insert into audit_entry (at, actor, assumed_role, action, object_type, object_id, project_id, outcome,
                                 request_id, user_agent, details)
        select now(), %(event_actor)s::text, %(event_role)s::text, type, object_type, object_id,
               %(event_project)s::text, 'done', %(event_request)s::text, %(event_agent)s::text, data
        from changed
    ),
    announced as (
        insert into outbox_event (created_at, id, type, project_id, object_type, object_id, actor, request_id, data)
        select now(), gen_random_uuid(), type, %(event_project)s::text, object_type, object_id,
               %(event_actor)s::text, %(event_request)s::text, data
        from changed
    )
    select count(*) from changed
"""
