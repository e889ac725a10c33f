"""How many objects there may be of each kind: asked by whatever creates one, before it does.

Counting a million rows for each creation would cost more than the creation. While a count leaves much room, a part of
that room is given to this process for a while, and only then it counts again; near the limit every creation counts.
"""

import time
from dataclasses import dataclass
from threading import Lock
from typing import Any

from django.db.models import QuerySet

from lakewarden import config
from lakewarden.errors import QuotaExceeded

GOOD_FOR_S = 60
PARTS = 20  # so that many processes, each with a part of the room, do not pass the limit together
MOST_REMEMBERED = 10_000


@dataclass(slots=True)
class _Room:
    left: int
    until: float


_rooms: dict[tuple[str, str, int], _Room] = {}
_lock = Lock()


def ensure_room(quota: str, existing: QuerySet[Any], *, within: str, adding: int = 1) -> None:
    """Raises QuotaExceeded when `existing` and `adding` more are over the setting `quotas.<quota>`.

    `within` is the id of what they lie in. Creations at the same time may pass the limit by as many as they are.
    """
    limit: int = getattr(config.current().quotas, quota)
    if not limit or _take(key := (quota, within, limit), adding):
        return
    there = existing.order_by()[: limit + 1].count()
    if there + adding > limit:
        raise QuotaExceeded(
            f"There are {min(there, limit)} {quota.replace('_', ' ')} already, and at most {limit} are allowed "
            f"(quotas.{quota}): delete some, or ask the server's operator to raise the limit"
        )
    _keep(key, room=limit - there - adding)


def begin_empty(quota: str, *, within: str) -> None:
    """Say that nothing is in what was just created: the first creations in it need not count."""
    limit: int = getattr(config.current().quotas, quota)
    _keep((quota, within, limit), room=limit)


def take_room(quota: str, *, within: str) -> bool:
    """Whether there is room for one more as far as is known without counting; it is taken then."""
    limit: int = getattr(config.current().quotas, quota)
    return not limit or _take((quota, within, limit), 1)


def _keep(key: tuple[str, str, int], *, room: int) -> None:
    with _lock:
        if len(_rooms) >= MOST_REMEMBERED:
            _rooms.clear()
        _rooms[key] = _Room(room // PARTS, time.monotonic() + GOOD_FOR_S)


def _take(key: tuple[str, str, int], adding: int) -> bool:
    with _lock:
        room = _rooms.get(key)
        if room is None or room.left < adding or room.until < time.monotonic():
            return False
        room.left -= adding
        return True
