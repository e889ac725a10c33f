"""What waits in the fallback files, by source: which number comes next, and what a repetition is compared with."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from ingest.services.fallback.file import FallbackFailed
from ingest.services.fallback.records import Chain, Kept
from ingest.services.log import Batch, Request, Verdict

_ONLY: Final = 1  # the number of a request, which is the only one of its key


@dataclass(slots=True)
class Link:
    """One batch or request; `durable` ends when it is on the disk, or could not be written."""

    mark: int | bytes
    durable: "asyncio.Future[None]"


@dataclass(slots=True)
class Waiting:
    """Of one source. Numbers up to `last` were taken, those up to `written` are on the disk."""

    last: int
    written: int
    links: dict[int, Link] = field(default_factory=dict)
    settled: asyncio.Event = field(default_factory=asyncio.Event)


class Chains:
    """Belongs to one event loop. `by_warehouse` counts what waits."""

    def __init__(self) -> None:
        self._waiting: dict[Chain, Waiting] = {}
        self.by_warehouse = Counter[UUID]()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def find(self, chain: Chain) -> Waiting | None:
        return self._waiting.get(chain)

    def judge(self, chain: Chain, sent: Batch | Request, expected: int | None) -> tuple[Verdict, int]:
        """What is to become of it, and the next number of its source. Only APPENDED ones are to be added.

        `expected` is the number that the log expected last. Raises FallbackFailed when that is not known.
        """
        waiting, number = self._waiting.get(chain), number_of(sent)
        following = expected if waiting is None else waiting.last + 1
        if isinstance(sent, Request):
            following = following or _ONLY
        if following is None:
            raise FallbackFailed("the log has not confirmed yet where the source goes on")
        if number == following:
            return Verdict.APPENDED, following + 1
        if number > following:
            return Verdict.GAP, following
        link = None if waiting is None else waiting.links.get(number)
        if link is None:
            raise FallbackFailed("only the log knows whether it is a repetition")
        return (Verdict.DUPLICATE if link.mark == mark_of(sent) else Verdict.DIFFERENT), following

    def add(self, chain: Chain, sent: Batch | Request, durable: "asyncio.Future[None]") -> None:
        number = number_of(sent)
        waiting = self._waiting.setdefault(chain, Waiting(number - 1, number - 1))
        self.by_warehouse[chain[0]] += number not in waiting.links
        waiting.links[number] = Link(mark_of(sent), durable)
        waiting.last = number

    def add_recovered(self, kept: Kept) -> None:
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        durable.set_result(None)
        self.add(kept.chain, kept.sent, durable)
        self._waiting[kept.chain].written = self._waiting[kept.chain].last

    def remove(self, chain: Chain, number: int) -> None:
        """It is in the log, or was never written."""
        waiting = self._waiting.get(chain)
        if waiting is None or waiting.links.pop(number, None) is None:
            return
        self.by_warehouse[chain[0]] -= 1
        if number > waiting.written:
            waiting.last = waiting.written
            while waiting.last + 1 in waiting.links:
                waiting.last += 1
        if not waiting.links:
            del self._waiting[chain]
            waiting.settled.set()
        if not self.by_warehouse[chain[0]]:
            del self.by_warehouse[chain[0]]


def number_of(sent: Batch | Request) -> int:
    return sent.sequence_number if isinstance(sent, Batch) else _ONLY


def mark_of(sent: Batch | Request) -> int | bytes:
    """What differs between other events under the same number."""
    return sent.checksum if isinstance(sent, Batch) else sent.digest
