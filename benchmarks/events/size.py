"""How large the log becomes while days pass: the tasks of the worker run as they would, on a clock that runs ahead."""

from datetime import UTC, datetime, timedelta

from django.db import connection

from benchmarks.events.scene import change_many, row

_LOG = """
    select (select count(*) from event_log), (select count(*) from pg_inherits where inhparent = 'event_log'::regclass),
           (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'event_log'::regclass),
           pg_total_relation_size('outbox_event')
"""


def size(*, days: int, changes: int, retention_days: int) -> None:
    """Each day brings as many changes, which all sinks receive, and ends with the task of the worker."""
    from lakewarden import config  # noqa: PLC0415 Django must be set up
    from lakewarden.events import log, periodic_tasks  # noqa: PLC0415

    now = config.current()
    events = now.events.model_copy(update={"retention_days": retention_days})
    config.current = lambda: now.model_copy(update={"events": events})  # type: ignore[assignment]
    print(f"\n{changes} changes a day, kept for {retention_days} days\n")
    print("| day | events in the log | partitions dropped | log (MB) | outbox (MB) |\n|---|---|---|---|---|")
    today, end = datetime.now(UTC), 0
    for day in range(days):
        then = today + timedelta(days=day)
        change_many(changes)
        while log.append_new():
            pass
        with connection.cursor() as cursor:
            # what was logged just now was logged on that day
            cursor.execute("update event_log set at = %s where at < %s and position > %s", [then, then, end])
            cursor.execute("update event_sink set delivered = (select max(position) from event_log), seen_at = now()")
        end = log.last_position()
        dropped = periodic_tasks.keep_event_log(int(then.timestamp()))
        with connection.cursor() as cursor:
            cursor.execute("vacuum outbox_event")
        found, _, stored, outbox = row(_LOG)
        print(f"| {day + 1} | {found} | {dropped} | {float(stored) / 1e6:.2f} | {outbox / 1e6:.2f} |", flush=True)
