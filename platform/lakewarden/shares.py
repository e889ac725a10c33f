"""So much of something that is short (threads, places, bytes), divided so that no caller can take all of it."""

import threading
from typing import Final

from lakewarden import board

_ALL: Final = 100


class Shares:
    """`total` units. Thread-safe.

    A caller may take more while what they hold stays below a multiple of what is free: alone they get `percent` of
    all; the more others hold, the less. So there is something left for who comes next, without a fixed share for each.
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
        """Whether the caller may have `amount` more; then they have it."""
        with self._lock:
            if not self._has_room(caller, amount):
                return False
            self._add(caller, amount)
            return True

    def force(self, caller: str, amount: int) -> None:
        """Count what is taken anyway; it may be more than there is."""
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
    """`total` units of all processes of the server together.

    What is taken is noted first and looked at then: of two processes that take the last of it at the same moment, at
    least one sees the other, so there is never more taken than there is.
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
    """Shares of what the server has once, however many processes it is; `name` is one of `board.AMOUNTS`."""
    if board.current().processes == 1:
        return Shares(total, percent=percent)
    return CommonShares(name, total, percent=percent)
