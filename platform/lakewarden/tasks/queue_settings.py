"""The settings of queues for warehouses and projects: the management API writes them, the workers read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from lakewarden.context import RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest
from lakewarden.events.change_recording import Change, record
from lakewarden.prepared_statements import execute, fetch
from lakewarden.tasks.queues import LEAST_SILENCE_S, MOST_SILENCE_S, QUEUES, Queue
from lakewarden.tasks.scope import Scope


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The values that were set, without defaults.

    `max_silence_s`: seconds without a heartbeat until a task is restarted.
    """

    settings: dict[str, int]
    max_silence_s: int | None


def of(scope: Scope, queue: Queue) -> QueueSettings:
    found = fetch(_FIND.format(condition=scope.condition), {**scope.parameters, "queue": queue.name})
    return QueueSettings(*found[0]) if found else QueueSettings({}, None)


def value(scope: Scope, queue_name: str, setting: str) -> int:
    """The value that was set, else the default."""
    queue = QUEUES[queue_name]
    return of(scope, queue).settings.get(setting, queue.settings[setting].default)


def store(
    scope: Scope, queue: Queue, settings: Mapping[str, Any], *, max_silence_s: int | None, context: RequestContext
) -> None:
    """Replace all settings; those that are not given return to their defaults. Raises BadRequest for invalid values."""
    checked = queue.check(settings)
    if max_silence_s is not None and not LEAST_SILENCE_S <= max_silence_s <= MOST_SILENCE_S:
        raise BadRequest(
            f"max-seconds-since-last-heartbeat is {max_silence_s}: from {LEAST_SILENCE_S} to {MOST_SILENCE_S} is "
            "expected"
        )
    kind = "project" if scope.warehouse_id is None else "warehouse"
    data = {"queue-name": queue.name, "queue-config": checked, "max-seconds-since-last-heartbeat": max_silence_s}
    with changing():
        stored = {"queue": queue.name, "settings": Jsonb(checked), "silence": max_silence_s}
        execute(_STORE, {**scope.parameters, **stored})
        target = scope.project_id if scope.warehouse_id is None else str(scope.warehouse_id)
        record(Change("setTaskQueueConfig", kind, target, scope.project_id, data), context)


_FIND = "select t.settings, t.max_silence_s from task_queue_config t where {condition} and t.queue_name = %(queue)s"
_STORE = """
    insert into task_queue_config (project_id, warehouse_id, queue_name, settings, max_silence_s)
    values (%(project_id)s, %(warehouse_id)s, %(queue)s, %(settings)s, %(silence)s)
    on conflict (project_id, coalesce(warehouse_id, '00000000-0000-0000-0000-000000000000'::uuid), queue_name)
    do update set settings = excluded.settings, max_silence_s = excluded.max_silence_s, updated_at = now()
"""
