"""Counts calls in memory, for the hot routes and `http.observation`; `call_statistics` stores the counts regularly."""

import time
from collections.abc import Mapping
from threading import Lock
from typing import Final, NamedTuple
from uuid import UUID

CAPACITY: Final = 20_000

# a call's members with the warehouse as a number: comparing UUIDs would cost more than all the rest
_Key = tuple[float, str, int | None, str, int]
_HOUR: Final = 3600  # seconds


class Call(NamedTuple):
    """`hour` counts from the epoch; `route` is a template, never a raw path."""

    hour: int
    project_id: str
    warehouse_id: UUID | None
    route: str
    status: int


class Counts:
    """Numbers of calls by what they have in common; bounded: kinds of calls beyond `capacity` are not counted."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._counts: dict[_Key, int] = {}
        self._lost = 0

    def add(self, route: str, status: int, *, project_id: str, warehouse_id: UUID | None = None) -> None:
        """Count one call of now; `warehouse_id` is None for one that is about no warehouse."""
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
        """All counts since the last look, and how many calls were not counted; both are forgotten here."""
        with self._lock:
            taken, self._counts = self._counts, {}
            lost, self._lost = self._lost, 0
        return {_call(key): number for key, number in taken.items()}, lost

    def give_back(self, taken: Mapping[Call, int]) -> None:
        """What could not be written is added to what came meanwhile."""
        for call, number in taken.items():
            warehouse = None if call.warehouse_id is None else call.warehouse_id.int
            self._add((call.hour, call.project_id, warehouse, call.route, call.status), number)


def _call(key: _Key) -> Call:
    hour, project_id, warehouse, route, status = key
    return Call(int(hour), project_id, None if warehouse is None else UUID(int=warehouse), route, status)


COUNTS = Counts()
