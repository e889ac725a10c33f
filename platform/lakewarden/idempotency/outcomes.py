"""Remembers the outcome of mutations by `Idempotency-Key`, and finds it for a repeated request.

A success is remembered in the transaction of its change: a server that is killed between the change and its answer
leaves both or none. Of two requests with one key at the same time, the second waits for the first in the database.
"""

import hashlib
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone
from psycopg.types.json import Jsonb

from lakewarden import config
from lakewarden.context import IdempotencyKey, RequestContext
from lakewarden.errors import BadRequest, Conflict
from lakewarden.idempotency.models import IdempotencyRecord
from lakewarden.prepared_statements import fetch
from lakewarden.retention import forget
from lakewarden.usage.budgets import spend

LIFETIME = timedelta(minutes=30)
LIFETIME_ISO = "PT30M"
GRACE = timedelta(minutes=5)
FORGOTTEN_AFTER = LIFETIME + GRACE
TURN = "1818978660, hashtext(principal_id || key::text)"
"""The advisory lock of a key, until the end of its transaction: a batch of commits sees by it that it had to wait."""


class RepeatedRequest(Conflict):
    """The key was used by an earlier request, which has changed what this one would have changed again."""

    def __init__(self) -> None:
        super().__init__("A request with this Idempotency-Key has been answered: ask again for its answer")


@dataclass(frozen=True, slots=True)
class Outcome:
    """`object_type` and `object_id` name what was changed; `refusal` is (status, body) of one refused for good.

    `answer` is (status, body) of one that was carried out, where that is kept (the management API).
    """

    object_type: str
    object_id: str
    data: dict[str, Any]
    refusal: tuple[int, bytes] | None
    answer: tuple[int, bytes] | None = None


def parse(value: str, *, project_id: str | None, method: str, path: str, body: bytes) -> IdempotencyKey:
    """The key of a request; `project_id` is what it says of its project: one path may mean a warehouse in each.

    Raises BadRequest unless `value` is a UUID in its 36 characters.
    """
    try:
        key = uuid.UUID(value)
    except ValueError:
        key = None
    if key is None or len(value) != 36:  # noqa: PLR2004 the text form's length
        raise BadRequest(f"Invalid Idempotency-Key {value[:80]!r}: a UUID of 36 characters is expected")
    about = ((project_id or "").encode(), method.encode(), path.encode(), body)
    digest = hashlib.sha256(b"\n".join(about)).hexdigest()
    return IdempotencyKey(key=key, fingerprint=digest, attempt=uuid.uuid4())


def find(context: RequestContext) -> Outcome | None:
    """The outcome of an earlier request of the same caller with this key.

    Raises BadRequest when the key belongs to another request.
    """
    asked = context.idempotency
    if asked is None:
        return None
    found = IdempotencyRecord.objects.filter(principal_id=context.caller.id, key=asked.key).first()
    if found is None or found.created_at < timezone.now() - FORGOTTEN_AFTER:
        return None
    if found.fingerprint != asked.fingerprint:
        raise BadRequest(f"The Idempotency-Key {asked.key} was used for another request: each needs a key of its own")
    refusal = (found.refusal_status, found.refusal_body.encode()) if found.refusal_status else None
    answer = (found.answer_status, found.answer_body.encode()) if found.answer_status else None
    return Outcome(found.object_type, found.object_id, found.data, refusal, answer)


def remember(context: RequestContext, *, object_type: str, object_id: str, data: dict[str, Any]) -> None:
    """Part of the transaction of a change; raises RepeatedRequest when an earlier request had the key."""
    if context.idempotency is not None:
        _insert(context, object_type=object_type, object_id=object_id, data=data)


def remember_refusal(context: RequestContext, *, status: int, body: bytes) -> None:
    """Remember a refusal of a request that was authorized, while the caller's budget of the hour lasts.

    Raises RepeatedRequest when an earlier request had the key.
    """
    if not context.trail.allowed or context.trail.refused:
        return
    limit = config.current().idempotency.refusals_per_hour
    if spend("remembered-refusals", context.caller.id, amount=1, limit=limit, period="hour"):
        _insert(context, refusal_status=status, refusal_body=body.decode())


def remember_answer(context: RequestContext, *, status: int, body: bytes) -> None:
    """Keep what a change was answered with; a request that changed nothing has no row, and needs none.

    An answer larger than `idempotency.max_answer_bytes` is not kept.
    """
    asked = context.idempotency
    if asked is not None and len(body) <= config.current().idempotency.max_answer_bytes:
        own = IdempotencyRecord.objects.filter(principal_id=context.caller.id, key=asked.key, attempt=asked.attempt)
        own.update(answer_status=status, answer_body=body.decode())


def forget_expired() -> int:
    """Remove what no client may ask for any more; returns how many went."""
    border = timezone.now() - FORGOTTEN_AFTER
    return forget(
        "idempotency_record", first="created_at", expired="created_at < %(border)s", parameters={"border": border}
    )


def _insert(
    context: RequestContext,
    *,
    object_type: str = "",
    object_id: str = "",
    data: dict[str, Any] | None = None,
    refusal_status: int | None = None,
    refusal_body: str = "",
) -> None:
    """A key of this very attempt is written over: of several changes in one request the last is its outcome."""
    asked = context.idempotency
    assert asked is not None  # noqa: S101 both callers have looked
    values = [context.caller.id, asked.key, asked.fingerprint, asked.attempt, object_type, object_id]
    written = fetch(
        _INSERT, [*values, Jsonb(data or {}), refusal_status, refusal_body, timezone.now() - FORGOTTEN_AFTER]
    )
    if not written:
        raise RepeatedRequest


_INSERT = f"""
    with asked as materialized (
        select *, pg_advisory_xact_lock({TURN})
        from (values (%s::text, %s::uuid, %s::text, %s::uuid, %s::text, %s::text, %s::jsonb, %s::int, %s::text))
            as k(principal_id, key, fingerprint, attempt, object_type, object_id, data, refusal_status, refusal_body)
    )
    insert into idempotency_record as kept (principal_id, key, fingerprint, attempt, object_type, object_id, data,
                                            refusal_status, refusal_body, created_at)
    select principal_id, key, fingerprint, attempt, object_type, object_id, data, refusal_status, refusal_body, now()
    from asked
    on conflict (principal_id, key) do update
    set fingerprint = excluded.fingerprint, attempt = excluded.attempt, object_type = excluded.object_type,
        object_id = excluded.object_id, data = excluded.data, refusal_status = excluded.refusal_status,
        refusal_body = excluded.refusal_body, created_at = excluded.created_at, answer_status = null, answer_body = ''
    where kept.attempt = excluded.attempt or kept.created_at < %s
    returning 1
"""  # noqa: S608 a constant
