"""`IngestClient`: batches in, acknowledgements out, over a socket that may break at any moment.

A batch stays here until the gateway has acknowledged it. After a lost connection, the gateway says up to which
sequence number of the source everything is durable; the rest is sent again, in order, and what arrives twice is
answered with `duplicate`. So every batch is in the log once, whatever breaks.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn, Self

from ingest.client import messages
from ingest.client.connection import Connection, socket_address
from ingest.client.errors import ConnectionLost, NotResumable, Refused
from ingest.client.events import ChangeEvent
from ingest.client.messages import Ack, FlushResponse, FlushResult, Limits, Nack, Status
from ingest.client.retries import Backoff
from ingest.client.tokens import TokenSource
from lakewarden.errors import InvalidArgument, NotAuthorized, RequestTimedOut

WINDOW = 8
ANSWER_TIMEOUT_S = 30.0
HEARTBEAT_S = 20.0
_TURN_S = 0.5


@dataclass(slots=True)
class _Pending:
    """A batch that is not acknowledged; `is_sent`: on the present connection, and not answered there."""

    events: Sequence[bytes]
    span: tuple[int, int]
    retries: int = 0
    is_sent: bool = False


def _ignore(_ack: Ack) -> None:
    pass


class IngestClient:
    """Sends batches of one source. For one thread; two clients must not use a source at the same time.

    `address`: that of the gateway, `https://host/lakehouse`. `source`: a name that stays the same over restarts.
    `window`: the number of batches that may be unacknowledged. `on_ack` is called for each acknowledged batch.
    After an error, a new client goes on behind what is durable: `connect` returns its number.
    Errors: `Refused` (a batch is wrong; nothing of it was stored), `NotAuthorized`, `Forbidden`, `NotFound`,
    `Unavailable` (after `backoff.give_up_s` without progress), `NotResumable` (the gateway's log is another one).
    """

    def __init__(
        self,
        address: str,
        *,
        source: str,
        token: TokenSource,
        warehouse: str | None = None,
        shard: str | None = None,
        window: int = WINDOW,
        backoff: Backoff | None = None,
        on_ack: Callable[[Ack], None] = _ignore,
    ) -> None:
        if not source or not source.isprintable() or not source.isascii():
            raise InvalidArgument(f"The source {source!r} must be a name of printable ASCII characters.")
        self._address = socket_address(address, warehouse)
        self._source, self._shard, self._token = source, shard, token
        self._window = self._allowed = max(1, window)
        self._backoff = backoff or Backoff()
        self._on_ack = on_ack
        self._pending: dict[int, _Pending] = {}
        self._connection: Connection | None = None
        self._acked = self._given = self._denials = 0
        self._may_be_behind = False
        self._not_before = self._heard = self._said = 0.0
        self._flushed: list[FlushResult] = []
        self.limits = Limits()

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self.wait()
        finally:
            self.close()

    @property
    def unacknowledged(self) -> int:
        """The number of batches that are not yet acknowledged."""
        return len(self._pending)

    @property
    def next_number(self) -> int:
        """The sequence number of the next batch."""
        return self._given + 1

    def connect(self) -> int:
        """Opens the socket; returns the last sequence number of this source that is durable, 0 if there is none."""
        while self._connection is None:
            self._open_or_pause()
        return self._acked

    def send(self, events: Sequence[ChangeEvent]) -> int:
        """Takes a batch, and returns its sequence number; waits only while the window is full."""
        if not events:
            raise InvalidArgument("A batch needs at least one event.")
        return self.send_encoded([each.encoded() for each in events], span=(events[0].sequence, events[-1].sequence))

    def send_encoded(self, events: Sequence[bytes], *, span: tuple[int, int]) -> int:
        """As `send`, with events that are JSON already; `span`: the sequences of the first and the last one."""
        self.connect()
        self._turn_until(lambda: len(self._pending) < self._allowed)
        self._given += 1
        self._pending[self._given] = _Pending(events, span)
        self._turn(0.0)
        return self._given

    def wait(self, timeout_s: float | None = None) -> None:
        """Returns when all batches are acknowledged. Raises `RequestTimedOut`."""
        self._turn_until(lambda: not self._pending, timeout_s=timeout_s)

    def poll(self) -> None:
        """Reads what has arrived; to be called now and then by those who send nothing for a while."""
        self.connect()
        self._turn(0.0)

    def flush(self, timeout_s: float = 180.0) -> FlushResult:
        """Waits until all batches are acknowledged, and then until they are in Iceberg tables."""
        self.wait(timeout_s)
        correlation, asked_on = f"{self._source}-flush-{time.time_ns()}", None
        deadline = time.monotonic() + timeout_s
        self._flushed.clear()
        while not self._flushed:
            self.connect()
            if asked_on is not self._connection:
                asked_on = self._connection
                self._say(messages.flush_request(source=self._source, correlation_id=correlation))
            if time.monotonic() > deadline:
                raise RequestTimedOut(f"The gateway did not finish the flush in {timeout_s:.0f} s.")
            self._turn(_TURN_S)
        return self._flushed[0]

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _turn_until(self, is_done: Callable[[], bool], *, timeout_s: float | None = None) -> None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not is_done():
            if deadline is not None and time.monotonic() > deadline:
                raise RequestTimedOut(f"{len(self._pending)} batches were not acknowledged in {timeout_s:.0f} s.")
            self._turn(_TURN_S)

    def _turn(self, timeout_s: float) -> None:
        """One step: send what may be sent, read one message, notice a connection that is lost or silent."""
        if self._connection is None:
            self._open_or_pause()
            return
        try:
            self._send_pending()
            timeout_s = min(timeout_s, max(0.0, self._not_before - time.monotonic())) or timeout_s
            if (message := self._connection.receive(timeout_s)) is not None:
                self._heard = time.monotonic()
                self._take(message)
            self._keep_alive()
        except ConnectionLost as lost:
            self._lose(lost)

    def _send_pending(self) -> None:
        """In order, and nothing past a batch that was put back before all answers to later ones have arrived."""
        if time.monotonic() < self._not_before or self._connection is None:
            return
        waiting = [number for number, each in self._pending.items() if not each.is_sent]
        if waiting and any(each.is_sent for number, each in self._pending.items() if number > waiting[0]):
            return
        for number in waiting:
            each = self._pending[number]
            self._say(
                messages.batch(
                    each.events,
                    source=self._source,
                    shard=self._shard,
                    sequence_number=number,
                    span=each.span,
                    retries=each.retries,
                )
            )
            each.is_sent = True

    def _say(self, message: bytes) -> None:
        if self._connection is not None:
            if not any(each.is_sent for each in self._pending.values()):
                self._heard = time.monotonic()  # silence counts from the first question that is not answered
            self._connection.send(message)
            self._said = time.monotonic()

    def _keep_alive(self) -> None:
        now = time.monotonic()
        if any(each.is_sent for each in self._pending.values()) and now - self._heard > ANSWER_TIMEOUT_S:
            raise ConnectionLost(f"the gateway acknowledged nothing for {ANSWER_TIMEOUT_S:.0f} s")
        if now - self._said > HEARTBEAT_S:
            events = sum(len(each.events) for each in self._pending.values())
            self._say(messages.heartbeat(source=self._source, last_acked=self._acked, pending=events))

    def _take(self, message: messages.Received) -> None:
        match message:
            case Ack():
                self._acknowledge(message)
            case Nack():
                self._refuse(message)
            case FlushResponse():
                self._flushed.append(message.result)
            case Status() if message.capabilities is not None:
                self.limits = message.capabilities

    def _acknowledge(self, ack: Ack) -> None:
        if self._pending.pop(ack.sequence_number, None) is None:
            return
        self._acked = max(self._acked, ack.sequence_number)
        # another replica does not see what is in the fallback file of this one, until it is replayed
        self._may_be_behind = ack.status == "fallback"
        # a buffer that is nearly full: one batch at a time until it says `ok` again
        self._allowed = 1 if ack.status == "buffered" else min(self._window, self._allowed * 2)
        self._denials = 0
        self._backoff.succeeded()
        self._on_ack(ack)

    def _refuse(self, nack: Nack) -> None:
        number = nack.sequence_number
        if number is None or (pending := self._pending.get(number)) is None:
            if not nack.should_retry:
                self._give_up(nack)
            self._pause(nack)  # the whole connection is to slow down
            return
        was_put_back = any(not each.is_sent for earlier, each in self._pending.items() if earlier < number)
        pending.is_sent = False
        if nack.reason == "invalid_sequence" and was_put_back:
            return  # it came behind a batch that was put back: both are sent again
        if not nack.should_retry and not (nack.reason == "invalid_sequence" and self._may_be_behind):
            self._give_up(nack)
        pending.retries += 1
        self._pause(nack)

    def _give_up(self, nack: Nack) -> NoReturn:
        self.close()
        raise Refused(_sentence(nack), reason=nack.reason, sequence_number=nack.sequence_number)

    def _pause(self, nack: Nack) -> None:
        seconds = self._backoff.pause_s(_sentence(nack).rstrip("."), at_least_s=nack.retry_delay_ms / 1000)
        self._not_before = max(self._not_before, time.monotonic() + seconds)

    def _open_or_pause(self) -> None:
        """Raises what no second try can mend."""
        if (rest := self._not_before - time.monotonic()) > 0:
            time.sleep(rest)
        try:
            self._open()
        except ConnectionLost as lost:
            self._lose(lost)

    def _lose(self, lost: ConnectionLost) -> None:
        self.close()
        for each in self._pending.values():
            each.retries += each.is_sent
            each.is_sent = False
        self._denials += lost.was_denied
        # the first denial may be of a token that has expired; the second one is of a fresh token
        if lost.was_denied and (not self._token.forget() or self._denials > 1):
            raise NotAuthorized(lost.message)
        self._not_before = time.monotonic() + self._backoff.pause_s(lost.message, at_least_s=lost.retry_after_s)

    def _open(self) -> None:
        headers = {"Authorization": f"Bearer {self._token.token()}", "X-Client-ID": self._source}
        if self._shard is not None:
            headers["X-Shard-Name"] = self._shard
        self._connection = Connection(self._address, headers=headers)
        self._heard = time.monotonic()
        self._say(messages.connect(source=self._source, shard=self._shard, last_acked=self._acked, limits=self.limits))
        self._resume(self._first_status())

    def _first_status(self) -> int:
        """What the gateway answers to `connect`: the last durable sequence number of this source."""
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while time.monotonic() < deadline and self._connection is not None:
            message = self._connection.receive(_TURN_S)
            match message:
                case Status():
                    self._take(message)
                    return message.acked(self._source) or 0
                case Ack():
                    return message.sequence_number
                case Nack() if message.should_retry:
                    raise ConnectionLost(_sentence(message), retry_after_s=message.retry_delay_ms / 1000)
                case Nack():
                    raise Refused(_sentence(message), reason=message.reason, sequence_number=message.sequence_number)
        raise ConnectionLost(f"the gateway did not answer to `connect` in {ANSWER_TIMEOUT_S:.0f} s")

    def _resume(self, durable: int) -> None:
        """Forgets what is durable; the rest is sent again. The first time, numbers go on behind `durable`."""
        if self._given == 0:
            self._given = self._acked = durable
            return
        if durable > self._given:
            raise NotResumable(
                f"The gateway has batch {durable} of source {self._source!r}, but only {self._given} were sent from "
                "here: something else sends with the same source. Give each sender its own."
            )
        for number in [number for number in self._pending if number <= durable]:
            self._acknowledge(Ack(sequence_number=number, status="duplicate"))


def _sentence(nack: Nack) -> str:
    said = nack.error_message.rstrip(".") or "no reason given"
    what = "a message" if nack.sequence_number is None else f"batch {nack.sequence_number}"
    return f"the gateway refused {what} ({nack.reason}): {said}"
