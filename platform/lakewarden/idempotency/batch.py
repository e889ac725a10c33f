"""The idempotency keys of several requests, looked at and remembered by one statement that never waits for a key.

Its parts stand in a `with` list, all within one transaction: ASKED first, then the caller's own `held`, with a column
`g` of the groups that are carried out (a group with a row in `unusable_keys` must not be in it), then REMEMBERED.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils import timezone

from lakewarden.context import IdempotencyKey
from lakewarden.idempotency.outcomes import FORGOTTEN_AFTER, TURN
from lakewarden.prepared_statements import rows_of


@dataclass(frozen=True, slots=True)
class KeyedChange:
    """A change that was requested with a key; `number` identifies it for the caller, `group` the changes that it
    belongs to.
    """

    number: int
    group: int
    actor: str
    key: IdempotencyKey
    object_type: str
    object_id: str
    data: dict[str, Any]


ASKED: Final = f"""
    asked_keys as materialized (
        select *, pg_try_advisory_xact_lock({TURN}) as is_free
        from jsonb_to_recordset(%(keys)s::jsonb)
            as k(n int, g int, principal_id text, key uuid, fingerprint text, attempt uuid, object_type text,
                 object_id text, data jsonb)
    ),
    unusable_keys as materialized (
        select k.n, k.g from asked_keys k
        left join idempotency_record r
            on r.principal_id = k.principal_id and r.key = k.key and r.attempt <> k.attempt
            and r.created_at >= %(key_border)s
        where not k.is_free or r.id is not null or exists (
            select from asked_keys before
            where before.principal_id = k.principal_id and before.key = k.key and before.n < k.n
        )
    )
"""  # noqa: S608 a constant
REMEMBERED: Final = """
    remembered as (
        insert into idempotency_record as kept (principal_id, key, fingerprint, attempt, object_type, object_id, data,
                                                refusal_body, created_at)
        select principal_id, key, fingerprint, attempt, object_type, object_id, data, '', now()
        from asked_keys join held using (g)
        on conflict (principal_id, key) do update
        set fingerprint = excluded.fingerprint, attempt = excluded.attempt, object_type = excluded.object_type,
            object_id = excluded.object_id, data = excluded.data, refusal_status = null, refusal_body = '',
            created_at = excluded.created_at, answer_status = null, answer_body = ''
        where kept.attempt = excluded.attempt or kept.created_at < %(key_border)s
        returning 1
    )
"""
ALL_REMEMBERED: Final = """
    1 / (case when (select count(*) from remembered) = (select count(*) from asked_keys join held using (g))
         then 1 else 0 end)
"""
"""To be selected: ends the statement, so that nothing is applied, when a key was used since the statement began."""


def parameters(changes: Sequence[KeyedChange]) -> dict[str, object]:
    """What the parts are executed with."""
    rows = [
        {
            "n": each.number,
            "g": each.group,
            "principal_id": each.actor,
            "key": each.key.key,
            "fingerprint": each.key.fingerprint,
            "attempt": each.key.attempt,
            "object_type": each.object_type,
            "object_id": each.object_id,
            "data": each.data,
        }
        for each in changes
    ]
    return {"keys": rows_of(rows), "key_border": timezone.now() - FORGOTTEN_AFTER}
