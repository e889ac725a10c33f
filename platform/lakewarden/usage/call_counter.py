"""Counts API calls in memory, for the hot routes and `http.call_recording`; `call_statistics` stores them regularly."""

import time
from collections.abc import Mapping
from threading import Lock
from typing import Final, NamedTuple
from uuid import UUID

CAPACITY: Final = 20_000

# the fields of `Call`, with the warehouse's UUID as an integer: comparing UUIDs would cost more than all the rest
_Key = tuple[float, str, int | None, str, int]
_HOUR: Final = 3600  # seconds


class Call(NamedTuple):
    """`hour` is in hours since 1970; `route` is a template, never a raw path."""

    hour: int
    project_id: str
    warehouse_id: UUID | None
    route: str
    status: int


class Counts:
    """Number of calls by hour, project, warehouse, route and status; combinations beyond `capacity` are not counted."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._counts: dict[_Key, int] = {}
        self._lost = 0

    def add(self, route: str, status: int, *, project_id: str, warehouse_id: UUID | None = None) -> None:
        """Count one call now; `warehouse_id` is None for a call that does not concern a warehouse."""
        warehouse = None if warehouse_id is None else warehouse_id.int
        key = (time.time() // _HOUR, project_id, warehouse, route, status)
        with self._lock:
            known = self._counts.get(key)
            if known is not None:
                self._counts[key] = known + 1
                return
        self._add(key, 1)

    def _add(self, key: _Key, number: int) -> None:
        with self._lock:
            known = self._counts.get(key, 0)
            if known or len(self._counts) < self._capacity:
                self._counts[key] = known + number
            else:
                self._lost += number

    def take(self) -> tuple[dict[Call, int], int]:
        """Remove and return all counts, and how many calls were not counted."""
        with self._lock:
            taken, self._counts = self._counts, {}
            lost, self._lost = self._lost, 0
        return {_call(key): number for key, number in taken.items()}, lost

    def give_back(self, taken: Mapping[Call, int]) -> None:
        """Add counts that could not be written to those that arrived meanwhile."""
        for call, number in taken.items():
            warehouse = None if call.warehouse_id is None else call.warehouse_id.int
            self._add((call.hour, call.project_id, warehouse, call.route, call.status), number)


def _call(key: _Key) -> Call:
    hour, project_id, warehouse, route, status = key
    return Call(int(hour), project_id, None if warehouse is None else UUID(int=warehouse), route, status)


COUNTS = Counts()
