"""Checks whether events reach their sinks; for database.py."""

from collections.abc import Iterator
from typing import Final

import psycopg

from lakewarden.doctor.findings import Finding, ok, warn

LATE_S: Final = 300  # events of this age should have been delivered
_NAME: Final = "event sink"
_SINKS: Final = """
    select s.name, greatest((select coalesce(max(position), 0) from event_log) - s.delivered, 0),
           extract(epoch from now() - (
               select at from event_log where position > s.delivered order by position limit 1
           )),
           s.failure, (select count(*) from event_dead_letter d where d.sink = s.name)
    from event_sink s order by s.name
"""


def examine(connection: psycopg.Connection) -> Iterator[Finding]:
    for name, waiting, age_s, failure, letters in connection.execute(_SINKS).fetchall():
        sentence = f"{name!r}: {waiting} {'event waits' if waiting == 1 else 'events wait'}"
        if failure:
            yield warn(_NAME, f"{sentence}: {failure}", fix="correct the sink's settings, or what is wrong there")
        elif age_s is not None and age_s > LATE_S:
            yield warn(
                _NAME,
                f"{sentence}, the oldest for {int(age_s) // 60} minutes",
                fix="see that a worker runs (`lakewarden work`) whose settings have this sink",
            )
        else:
            yield ok(_NAME, sentence)
        if letters:
            yield warn(
                _NAME,
                f"{name!r} refused {letters} {'event' if letters == 1 else 'events'}",
                fix="`lakewarden events dead-letters list` says why; send them again, or drop them",
            )
