"""Divides a limited resource (threads, places, bytes) so no caller can take all of it."""

import threading
from typing import Final

from lakewarden import board

_ALL: Final = 100


class Shares:
    """`total` units of a resource. Thread-safe.

    A caller may take more as long as they hold less than a multiple of what is free. A single caller gets `percent` of
    the total; the more others hold, the less. So something is left for the next caller, without fixed shares.
    """

    def __init__(self, total: int, *, percent: int) -> None:
        self._total = total
        self._percent = percent
        self._held: dict[str, int] = {}
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        return self._taken

    def held_by(self, caller: str) -> int:
        return self._held.get(caller, 0)

    def take(self, caller: str, amount: int = 1) -> bool:
        """Take `amount` units for the caller; returns False, and takes nothing, if that is too much."""
        with self._lock:
            if not self._has_room(caller, amount):
                return False
            self._add(caller, amount)
            return True

    def force(self, caller: str, amount: int) -> None:
        """Take `amount` units even if that exceeds the total."""
        with self._lock:
            self._add(caller, amount)

    def has_room(self, caller: str) -> bool:
        return self._has_room(caller, 1)

    def give_back(self, caller: str, amount: int = 1) -> None:
        with self._lock:
            self._add(caller, -amount)

    def _has_room(self, caller: str, amount: int) -> bool:
        return self._fits(amount, free=self._total - self._taken, own=self._held.get(caller, 0) + amount)

    def _fits(self, amount: int, *, free: int, own: int) -> bool:
        return amount <= free and own * (_ALL - self._percent) <= free * self._percent

    def _add(self, caller: str, amount: int) -> None:
        self._taken += amount
        held = self._held.get(caller, 0) + amount
        if held:
            self._held[caller] = held
        else:
            self._held.pop(caller, None)


class CommonShares(Shares):
    """`total` units, shared by all processes of the server.

    The amount is added first and checked afterwards: if two processes take the last units at the same moment, at least
    one of them sees the other, so no more than the total is ever taken.
    """

    def __init__(self, name: str, total: int, *, percent: int, on: board.Board | None = None) -> None:
        super().__init__(total, percent=percent)
        self._name = name
        self._board = on or board.current()

    @property
    def taken(self) -> int:
        return self._board.taken(self._name)

    def held_by(self, caller: str) -> int:
        return self._board.held(self._name, self._board.bucket(caller))

    def take(self, caller: str, amount: int = 1) -> bool:
        with self._lock:
            self._add(caller, amount)
            free, own = self._total - self.taken + amount, self.held_by(caller)
            if self._fits(amount, free=free, own=own):
                return True
            self._add(caller, -amount)
            return False

    def _has_room(self, caller: str, amount: int) -> bool:
        return self._fits(amount, free=self._total - self.taken, own=self.held_by(caller) + amount)

    def _add(self, caller: str, amount: int) -> None:
        self._board.add(self._name, self._board.bucket(caller), amount)


def of_server(name: str, total: int, *, percent: int) -> Shares:
    """Shares of a resource of the whole server, however many processes it has; `name` is one of `board.AMOUNTS`."""
    if board.current().processes == 1:
        return Shares(total, percent=percent)
    return CommonShares(name, total, percent=percent)
