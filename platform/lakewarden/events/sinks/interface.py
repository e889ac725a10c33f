"""The interface of sinks, which deliver events outside."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol, Self
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Message:
    """An encoded event; messages with the same `key` are delivered in their order."""

    position: int
    id: UUID
    type: str
    key: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """A message that the sink will never take, and why."""

    message: Message
    reason: str


EnsureMine = Callable[[], None]
"""Raises LeaseLost if another worker may serve the sink by now. Sinks call it before each thing that they send, so that
a process that was frozen sends no more than what was on its way."""


class SinkFailed(Exception):
    """The sink cannot be reached, or does not take events now: they are delivered later. The message says why.

    The first `done` messages of the batch need not be delivered again, and neither need later ones whose positions are
    in `ahead`: a sink that is full for one partition, or for large messages, would get all others again with each
    attempt. `refused` are among them.
    """

    def __init__(
        self, message: str, *, done: int = 0, refused: Sequence[Refused] = (), ahead: Collection[int] = ()
    ) -> None:
        super().__init__(message)
        self.done, self.refused, self.ahead = done, refused, frozenset(ahead)

    @classmethod
    def after(
        cls, message: str, messages: Sequence[Message], *, settled: Collection[int], refused: Sequence[Refused] = ()
    ) -> Self:
        """Those in `settled` are durable, or refused. After one that is not, its object's events are sent again."""
        done = sum(1 for _ in takewhile(lambda each: each.position in settled, messages))
        ahead, waiting = set[int](), set[str]()
        for each in messages[done:]:
            if each.position not in settled:
                waiting.add(each.key)
            elif each.key not in waiting:
                ahead.add(each.position)
        return cls(message, done=done, refused=refused, ahead=ahead)


class Sink(Protocol):
    """A connection to one sink; only one relay at a time uses it."""

    def deliver(self, messages: Sequence[Message]) -> Sequence[Refused]:
        """Deliver all messages in their order; they are durable at the receiver when this returns.

        Returns those that can never be delivered. Raises SinkFailed, after which those that are not done are
        delivered again: some may arrive twice.
        """
        ...

    def close(self) -> None: ...
