"""Shared memory of the processes of one server: each writes its own row, all read all rows, and no lock is needed.

A row stays until the supervisor clears it after the end of its process: a process that hangs still uses what it has
taken. A server of one process has a board of one row, in its own memory.
"""

import mmap
import os
import secrets
import tempfile
from hashlib import blake2b
from typing import Final, Self

WORD: Final = 8
BUCKETS: Final = 1024
"""Number of hash buckets for callers. Two callers in one bucket share a limit; the hash is keyed, so a caller cannot
choose their bucket."""
AMOUNTS: Final = ("bodies", "answers", "working", "readers")
"""The amounts that are counted by caller."""

_SECRET: Final = 16  # bytes at the beginning of the memory
_STATE, _SEEN, _CONNECTIONS, _LEFT_ALONE, _FULL, _CONTENTS, _CONTENTS_AT, _OF_A_PROCESS = range(8)
_COLUMNS: Final = _OF_A_PROCESS + len(AMOUNTS) * (1 + BUCKETS)
_HEAD: Final = _SECRET // WORD + 1  # words: the secret, and a flag that all processes were ready once


class Board:
    """`row` is the row of this process; the supervisor has none (-1)."""

    def __init__(self, file: int, *, processes: int, row: int) -> None:
        self.processes = processes
        self.row = row
        self._memory = mmap.mmap(file, _size(processes))
        self._words = memoryview(self._memory).cast("q")
        self._secret = self._memory[:_SECRET]

    @classmethod
    def alone(cls) -> Self:
        """The board of a server of one process."""
        return cls(-1, processes=1, row=0)

    @property
    def were_all_ready(self) -> bool:
        """Whether all processes were ready at the same time at least once."""
        return bool(self._words[_HEAD - 1])

    def note_all_ready(self) -> None:
        self._words[_HEAD - 1] = 1

    @property
    def ready(self) -> int:
        """How many processes are ready."""
        return sum(self._words[self._at(row, _STATE)] for row in range(self.processes))

    def note_ready(self) -> None:
        self._words[self._at(self.row, _STATE)] = 1

    def note_alive(self, milliseconds: int, *, connections: int) -> None:
        """Heartbeat; `milliseconds` are of the monotonic clock, which all processes of a machine share."""
        self._words[self._at(self.row, _SEEN)] = milliseconds
        self._words[self._at(self.row, _CONNECTIONS)] = connections

    def note_left_alone(self, stores: int) -> None:
        """How many object stores this process does not ask at present, because they keep failing."""
        self._words[self._at(self.row, _LEFT_ALONE)] = stores

    @property
    def left_alone(self) -> int:
        """As the process that leaves most stores alone sees it: the same store may fail for all of them."""
        return max(self._words[self._at(row, _LEFT_ALONE)] for row in range(self.processes))

    def note_full(self, milliseconds: int) -> None:
        """A write found no space; the time is of the monotonic clock."""
        self._words[self._at(self.row, _FULL)] = milliseconds

    @property
    def full_at(self) -> int:
        """When a process last found no space; 0 if none has."""
        return max(self._words[self._at(row, _FULL)] for row in range(self.processes))

    def note_contents(self, state: int, milliseconds: int) -> None:
        """What this process last found of the place of contents; 0 is well, the time is of the monotonic clock."""
        self._words[self._at(self.row, _CONTENTS)] = state
        self._words[self._at(self.row, _CONTENTS_AT)] = milliseconds

    def contents_since(self, milliseconds: int) -> int:
        """What processes found then or later: the highest number."""
        rows = range(self.processes)
        recent = [row for row in rows if self._words[self._at(row, _CONTENTS_AT)] >= milliseconds]
        return max((self._words[self._at(row, _CONTENTS)] for row in recent), default=0)

    def seen(self, row: int) -> int:
        """The last heartbeat of the process of this row, in milliseconds of the monotonic clock."""
        return int(self._words[self._at(row, _SEEN)])

    @property
    def connections(self) -> int:
        """Open connections of all processes."""
        return sum(self._words[self._at(row, _CONNECTIONS)] for row in range(self.processes))

    def fewest_connections_elsewhere(self) -> int | None:
        """The smallest number of connections of another process that is ready; None if there is none."""
        others = [row for row in range(self.processes) if row != self.row and self._words[self._at(row, _STATE)]]
        return min((self._words[self._at(row, _CONNECTIONS)] for row in others), default=None)

    def clear(self, row: int) -> None:
        """Reset the row of a process that has ended."""
        for column in range(_COLUMNS):
            self._words[self._at(row, column)] = 0

    def bucket(self, caller: str) -> int:
        digest = blake2b(caller.encode(), key=self._secret, digest_size=4).digest()
        return int.from_bytes(digest) % BUCKETS

    def add(self, amount: str, bucket: int, change: int) -> None:
        """Change an amount of this process. Not thread-safe: the caller must hold a lock."""
        total = _OF_A_PROCESS + AMOUNTS.index(amount) * (1 + BUCKETS)
        for column in (total, total + 1 + bucket):
            self._words[self._at(self.row, column)] += change

    def taken(self, amount: str) -> int:
        """The sum of an amount over all processes."""
        return self._sum(_OF_A_PROCESS + AMOUNTS.index(amount) * (1 + BUCKETS))

    def held(self, amount: str, bucket: int) -> int:
        """The sum of an amount over all processes, for the callers of one bucket."""
        return self._sum(_OF_A_PROCESS + AMOUNTS.index(amount) * (1 + BUCKETS) + 1 + bucket)

    def _sum(self, column: int) -> int:
        return sum(self._words[self._at(row, column)] for row in range(self.processes))

    @staticmethod
    def _at(row: int, column: int) -> int:
        return _HEAD + row * _COLUMNS + column


def _size(processes: int) -> int:
    return WORD * (_HEAD + processes * _COLUMNS)


def new_file(processes: int) -> int:
    """Create the file of a new board; returns its descriptor. The file has no name, so no other process can open it."""
    with tempfile.TemporaryFile() as file:
        file.truncate(_size(processes))
        file.write(secrets.token_bytes(_SECRET))
        file.flush()
        return os.dup(file.fileno())


_current = Board.alone()


def current() -> Board:
    """The board of this process."""
    return _current


def join(file: int, *, processes: int, row: int) -> None:
    """Use the board of the server's other processes; called before anything is counted."""
    global _current  # noqa: PLW0603 a process has one
    _current = Board(file, processes=processes, row=row)
