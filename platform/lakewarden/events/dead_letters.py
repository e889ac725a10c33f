"""Events that a sink refused forever: kept with the reason, looked at, sent again or dropped."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from lakewarden import config
from lakewarden.errors import NotFound
from lakewarden.events.sinks.interface import Message, Refused
from lakewarden.prepared_statements import execute, fetch

LONGEST_REASON: Final = 500


@dataclass(frozen=True, slots=True)
class Letter:
    """`event` is as it would have been delivered; `again` says that a worker will send it once more."""

    id: int
    sink: str
    position: int
    event_id: UUID
    type: str
    reason: str
    attempts: int
    first_at: datetime
    last_at: datetime
    again: bool
    event: dict[str, Any]


def keep(sink: str, refused: Sequence[Refused]) -> None:
    """Those beyond `events.dead_letters_of_one_sink` are deleted, the oldest first."""
    if not refused:
        return
    with transaction.atomic():
        for each in refused:
            message = each.message
            execute(_KEEP, [sink, message.position, message.id, message.body.decode(), each.reason[:LONGEST_REASON]])
        execute(_BOUND, [sink, sink, config.current().events.dead_letters_of_one_sink])


def listed(*, sink: str | None, after: int, limit: int) -> list[Letter]:
    """In the order of their ids, which are greater than `after`; None: of all sinks."""
    return [Letter(*row) for row in fetch(_LIST, [sink, sink, after, limit])]


def get(identifier: int) -> Letter:
    """Raises NotFound."""
    rows = fetch(_FIND, [identifier])
    if not rows:
        raise NotFound(f"The dead letter {identifier} does not exist: it may have been sent or dropped")
    return Letter(*rows[0])


def send_again(sink: str, ids: Sequence[int] | None) -> int:
    """Ask the worker that serves the sink for one more attempt; returns how many. None: all of the sink."""
    return _changed(_AGAIN, sink, ids)


def drop(sink: str, ids: Sequence[int] | None) -> int:
    """Returns how many are gone."""
    return _changed(_DROP, sink, ids)


def asked_again(sink: str, *, limit: int) -> list[tuple[int, Message]]:
    """Those that shall be sent once more, with their ids, oldest first."""
    return [
        (identifier, Message(position, event_id, event_type, key, body.encode()))
        for identifier, position, event_id, event_type, key, body in fetch(_ASKED, [sink, limit])
    ]


def settle(identifier: int, refused: Sequence[Refused]) -> None:
    """After one more attempt: it is gone if it was taken, and has the new reason if it was refused."""
    if refused:
        execute(_REFUSED_AGAIN, [refused[0].reason[:LONGEST_REASON], identifier])
    else:
        execute(_TAKEN, [identifier])


def _changed(statement: str, sink: str, ids: Sequence[int] | None) -> int:
    chosen = None if ids is None else list(ids)
    ((count,),) = fetch(statement, [sink, chosen, chosen])
    return int(count)


_COLUMNS: Final = (
    "id, sink, position, event_id, event->>'type', reason, attempts, coalesce(first_at, at), at, again, event"
)
_CHOSEN: Final = "sink = %s and (%s::bigint[] is null or id = any(%s::bigint[]))"
_KEEP: Final = """
    insert into event_dead_letter (sink, position, event_id, event, reason, at, first_at, attempts, again)
    values (%s, %s, %s, %s::text::jsonb, %s, now(), now(), 1, false)
    on conflict (sink, position) do update
    set reason = excluded.reason, at = now(), attempts = event_dead_letter.attempts + 1, again = false
"""
_BOUND: Final = """
    delete from event_dead_letter where sink = %s and id <= (
        select id from event_dead_letter where sink = %s order by id desc offset %s limit 1
    )
"""
_LIST: Final = f"""
    select {_COLUMNS} from event_dead_letter
    where (%s::text is null or sink = %s::text) and id > %s order by id limit %s
"""  # noqa: S608 names of our own
_FIND: Final = f"select {_COLUMNS} from event_dead_letter where id = %s"  # noqa: S608
_AGAIN: Final = f"""
    with asked as (update event_dead_letter set again = true where {_CHOSEN} returning 1) select count(*) from asked
"""  # noqa: S608
_DROP: Final = f"""
    with gone as (delete from event_dead_letter where {_CHOSEN} returning 1) select count(*) from gone
"""  # noqa: S608
_ASKED: Final = """
    select id, position, event_id, event->>'type', event->>'partitionkey', event::text
    from event_dead_letter where sink = %s and again order by position limit %s
"""
_TAKEN: Final = "delete from event_dead_letter where id = %s"
_REFUSED_AGAIN: Final = """
    update event_dead_letter set reason = %s, at = now(), attempts = attempts + 1, again = false
    where id = %s
"""
