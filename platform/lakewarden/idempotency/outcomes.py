"""Stores the outcome of requests with an `Idempotency-Key`, and finds it for a repeated request.

A success is stored in the transaction of its change, so a server that is killed leaves both or none. If two requests
with the same key run at the same time, the second waits for the first in the database (unique constraint).
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

IS_USED = "exists (select from idempotency_record r where r.principal_id = {principal} and r.key = {key})"
"""Whether there is a row of a key, of any age; as a part of statements that also read other data."""


class RepeatedRequest(Conflict):
    """An earlier request with the same key has made the change; the answer must be repeated from its outcome."""

    def __init__(self) -> None:
        super().__init__("A request with this Idempotency-Key has been answered: ask again for its answer")


@dataclass(frozen=True, slots=True)
class Outcome:
    """`object_type` and `object_id` name the changed object; `refusal` is (status, body) of a final refusal.

    `answer` is (status, body) of a success, where that is stored (only by the management API).
    """

    object_type: str
    object_id: str
    data: dict[str, Any]
    refusal: tuple[int, bytes] | None
    answer: tuple[int, bytes] | None = None


def parse(value: str, *, project_id: str | None, method: str, path: str, body: bytes) -> IdempotencyKey:
    """The key of a request.

    `project_id` is part of its fingerprint, because the same path may name an object in each project.

    Raises BadRequest unless `value` is a UUID of 36 characters.
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
    """The outcome of an earlier request of the same caller with this key; None if there is none.

    Raises BadRequest if the key was used for a different request.
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
    """Store a success in the transaction of the change; raises RepeatedRequest if an earlier request has the key."""
    if context.idempotency is not None:
        _insert(context, object_type=object_type, object_id=object_id, data=data)


def remember_refusal(context: RequestContext, *, status: int, body: bytes) -> None:
    """Store the refusal of a request that was authorized, within the caller's hourly budget.

    A repeated request without the right must be refused by its current rights, not by an old outcome. Raises
    RepeatedRequest if an earlier request has the key.
    """
    if not context.trail.allowed or context.trail.refused:
        return
    limit = config.current().idempotency.refusals_per_hour
    if spend("remembered-refusals", context.caller.id, amount=1, limit=limit, period="hour"):
        _insert(context, refusal_status=status, refusal_body=body.decode())


def remember_answer(context: RequestContext, *, status: int, body: bytes) -> None:
    """Store the answer to a change; a request that changed nothing has no row and can simply run again.

    An answer larger than `idempotency.max_answer_bytes` is not stored.
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
    """Insert the outcome; one of the same attempt is replaced: of several changes in a request, the last one counts."""
    asked = context.idempotency
    assert asked is not None  # noqa: S101 both callers have checked
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
