"""Records many changes in one statement, like `change_recording` for one; the rows never leave the database."""

from collections.abc import Mapping

from django.db import transaction

from lakewarden.audit.entries import INTO, user_agent_of
from lakewarden.context import RequestContext
from lakewarden.prepared_statements import fetch


def record_rows(changed: str, parameters: Mapping[str, object], *, project_id: str, context: RequestContext) -> int:
    """Write an audit row and an outbox event for each row of the query `changed`; returns how many.

    `changed` selects (type, object_type, object_id, data as jsonb) in the order of the events.
    Raises TransactionManagementError outside of a transaction, because a change must never be recorded in part.
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


_RECORD = f"""
    with changed(type, object_type, object_id, data) as materialized ({{changed}}),
    audited as (
        {INTO}
        select now(), %(event_actor)s::text, %(event_role)s::text, type, object_type, object_id,
               %(event_project)s::text, 'done', %(event_request)s::text, %(event_agent)s::text, data
        from changed
    ),
    announced as (
        insert into outbox_event (created_at, id, type, project_id, object_type, object_id, actor, assumed_role,
                                  request_id, data)
        select now(), gen_random_uuid(), type, %(event_project)s::text, object_type, object_id,
               %(event_actor)s::text, %(event_role)s::text, %(event_request)s::text, data
        from changed
    )
    select count(*) from changed
"""  # noqa: S608 constants
