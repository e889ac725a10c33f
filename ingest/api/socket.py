"""One socket: reads a message after another, appends batches while earlier ones are still being stored, answers in
order.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID
from zlib import crc32

import msgspec

from ingest import events, protocol
from ingest.api import overview
from ingest.api.callers import Sender
from ingest.api.intake import Decisions, said
from ingest.api.memory import IN_FLIGHT
from ingest.api.warehouses import shows_everything
from ingest.metrics import BATCH_EVENTS
from ingest.protocol import AckStatus, CdcBatch, Connect, FlushRequest, Heartbeat, NackReason, Refused
from ingest.rates import TokenBucket
from ingest.services import flushes, leases, log, storing
from ingest.services.appender import BATCHES, Item
from ingest.services.fallback.file import FallbackFailed, FallbackFull
from ingest.services.log import Batch, Outcome, Verdict
from ingest.services.statements import LogUnavailable, Unstorable
from lakewarden import config
from lakewarden.errors import BadRequest, Conflict, Forbidden, LakewardenError, NotAuthorized, NotFound, Unavailable
from lakewarden.http.call_recording import note_refused
from lakewarden.http.sockets import STOPPING

logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

POLICY, TOO_SLOW, UNAUTHORIZED, GOING_AWAY, TRY_AGAIN = 1008, 4408, 4401, 1012, 1013
_FAULTS: Final = 20
"""Messages in a row that are not valid, after which a socket is closed."""
_LAST_WORDS_S: Final = 0.5
_PAUSE_S: Final = 0.05
_ATTEMPTS: Final = 4
_LONGEST_REASON: Final = 123  # bytes: a frame of control has no more
_ROUTE: Final = "GET /lakehouse/ws"
_DENIED: Final = (BadRequest, Conflict, Forbidden, NotFound)


class Closed(Exception):
    """The socket is to be closed with this code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(slots=True)
class _Pending:
    """A message that waits for its answer, which is sent after those of the messages before it."""

    answer: "asyncio.Task[bytes]"


class Socket:
    """Accepted, of a caller whose token was verified. `lease` is that of its place among all sockets."""

    def __init__(self, sender: Sender, warehouse_id: UUID, send: Send, *, lease: UUID) -> None:
        self._settings = config.current().ingest
        self._sender = sender
        self._warehouse_id = warehouse_id
        self._send = send
        self._lease = lease
        self._decisions = Decisions(sender, warehouse_id, _ROUTE)
        self._bucket = TokenBucket(self._settings.messages_per_s, self._settings.burst)
        self._source: str | None = None
        self._principal = ""
        self._pending: asyncio.Queue[_Pending] = asyncio.Queue()
        self._room = asyncio.Semaphore(self._settings.window)
        self._last: asyncio.Task[bytes] | None = None
        self._retry_from: tuple[int, Refused] | None = None
        self._expected: int | None = None
        self._claimed: int | None = None
        self._failures = 0
        self._faults = 0
        self._is_stopping = False
        self._has_begun = False

    async def serve(self, receive: Receive) -> None:
        """Until the client goes, or something is wrong with it; what was read is answered first."""
        writer = asyncio.create_task(self._write())
        try:
            await self._read(receive, writer)
        except Closed as closed:
            await self._close(closed, writer)
        finally:
            writer.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await writer

    async def _read(self, receive: Receive, writer: "asyncio.Task[None]") -> None:
        while True:
            message = await self._next(receive, writer)
            if message["type"] == "websocket.disconnect":
                await self._finish(within_s=self._settings.flush_timeout_s)
                return
            if message["type"] == STOPPING:
                await self._drain(receive)
            text = message.get("text")
            await self._room.acquire()
            if text is None:
                self._answer(self._refuse_message("Binary messages are not supported: send JSON as text"))
            else:
                await self._handle(text)

    async def _next(self, receive: Receive, writer: "asyncio.Task[None]") -> MutableMapping[str, Any]:
        """Raises Closed when the token has expired, nobody speaks, or nobody reads the answers."""
        try:
            token = await self._sender.verified()
        except NotAuthorized as error:
            raise Closed(UNAUTHORIZED, error.message) from error
        except Unavailable as error:
            raise Closed(TRY_AGAIN, error.message) from error
        self._principal = token.id
        self._decisions.caller = self._sender.key_of(token)
        left_s = token.expires_at - time.time()
        if writer.done():
            raise Closed(TOO_SLOW, "The answers were not read in time")
        waited_s = min(self._settings.silence_s, max(left_s, 0.0))
        try:
            async with asyncio.timeout(waited_s):
                return await receive()
        except TimeoutError:
            if left_s <= self._settings.silence_s:
                # a token that was to be verified again is verified again
                return await self._next(receive, writer)
            raise Closed(TOO_SLOW, f"Nothing was received for {self._settings.silence_s:g} s") from None

    async def _handle(self, text: str) -> None:
        if not self._bucket.take():
            number, name = protocol.marks(text)
            refused = Refused(NackReason.RATE_LIMITED, self._too_fast())
            self._answer(self._refused(refused, number, name))
            await asyncio.sleep(min(self._bucket.next_in_s, _PAUSE_S))  # a refusal is work, too
            return
        try:
            message = protocol.DECODER.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            self._faults += 1
            self._answer(self._refuse_message(f"The message is not valid: {error}", text))
            if self._faults >= _FAULTS:
                await self._finish(within_s=_LAST_WORDS_S)
                raise Closed(POLICY, f"{_FAULTS} messages in a row were not valid") from None
            return
        self._faults = 0
        if isinstance(message, CdcBatch):
            self._answer(self._stored(message, len(text), self._last))
        elif isinstance(message, Heartbeat):
            self._answer(_done(protocol.pong()))
        elif isinstance(message, Connect):
            self._answer(self._connected(message))
            # batches after it need the source that it opens
            await self._finish(within_s=self._settings.flush_timeout_s)
        else:
            self._answer_later(self._flushed(message))

    def _answer(self, work: Awaitable[bytes]) -> None:
        """Answer with what `work` returns, in turn."""
        task = asyncio.ensure_future(self._guarded(work))
        self._last = task
        self._pending.put_nowait(_Pending(task))

    def _answer_later(self, work: Awaitable[bytes]) -> None:
        """Answer when it is done: acknowledgements do not wait for it."""
        task = asyncio.ensure_future(self._guarded(work))
        task.add_done_callback(lambda done: self._pending.put_nowait(_Pending(done)))

    async def _guarded(self, work: Awaitable[bytes]) -> bytes:
        try:
            return await work
        except Exception:
            logger.exception("A message of a socket failed")
            refused = Refused(NackReason.INTERNAL_ERROR, "An internal error occurred")
            return self._nacked(refused, None, None)

    async def _write(self) -> None:
        """Sends answers in their order; ends when the client does not read them in time."""
        limit_s = config.current().server.write_timeout_s
        while True:
            pending = await self._pending.get()
            content = await pending.answer
            try:
                async with asyncio.timeout(limit_s):
                    await self._send({"type": "websocket.send", "text": content.decode()})
            except (TimeoutError, OSError):
                return
            finally:
                self._room.release()
                self._pending.task_done()

    async def _finish(self, *, within_s: float) -> None:
        """Wait until all that was read is answered."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._pending.join()

    async def _drain(self, receive: Receive) -> None:
        """Answer what was read; refuse what still arrives; then close. Everything acknowledged is durable."""
        self._is_stopping = True
        await self._finish(within_s=config.current().server.stop_timeout_s / 2)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                while (message := await receive())["type"] == "websocket.receive":
                    number, name = protocol.marks(message.get("text") or "")
                    refused = Refused(NackReason.SHUTTING_DOWN, "This server is stopping: connect again")
                    await self._room.acquire()
                    self._answer(self._refused(refused, number, name))
        await self._finish(within_s=_LAST_WORDS_S)
        raise Closed(GOING_AWAY, "This server is stopping: connect again")

    async def _close(self, closed: Closed, writer: "asyncio.Task[None]") -> None:
        if not writer.done():
            await self._finish(within_s=_LAST_WORDS_S)
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                reason = closed.reason.encode()[:_LONGEST_REASON].decode(errors="ignore")
                message = {"type": "websocket.close", "code": closed.code, "reason": reason}
                await self._send(message)

    async def _sees_everything(self) -> bool:
        """Whether the sender, who may still use the warehouse, sees what others do in it. Raises Refused."""
        try:
            context = await self._sender.context()
            try:
                return await shows_everything(context, self._warehouse_id)
            except LakewardenError as error:
                note_refused(context, _ROUTE, error, address=self._sender.address)
                raise
        except LakewardenError as error:
            raise _denied(error) from error

    async def _connected(self, message: Connect) -> bytes:
        if message.protocol_version != protocol.PROTOCOL_VERSION:
            return await self._refuse_message(
                f"protocolVersion {message.protocol_version} is not supported; it must be {protocol.PROTOCOL_VERSION}"
            )
        try:
            await self._sees_everything()
            last = await self._open(message.source_do_id, message.source_shard_name or "", message.last_ack_sequence)
            self._claimed = message.last_ack_sequence
            state = await overview.status(self._warehouse_id)
        except Refused as refused:
            return self._nacked(refused, None, None)
        except (LogUnavailable, FallbackFailed) as error:
            return self._nacked(_unavailable(error), None, None)
        return protocol.status(
            {
                **state,
                "sourceDoId": message.source_do_id,
                "lastAckedSequence": last,
                "protocolVersion": protocol.PROTOCOL_VERSION,
                "capabilities": overview.capabilities(),
            }
        )

    async def _open(self, source: str, shard: str, last_acked: int | None) -> int | None:
        """Open the source of this connection. Raises Refused, LogUnavailable, FallbackFailed."""
        if self._source not in {None, source}:
            raise Refused(
                NackReason.INVALID_FORMAT,
                f"sourceDoId {source!r} is not the one of this connection, {self._source!r}: open another connection",
            )
        found = await leases.take(
            self._lease, self._warehouse_id, address=self._sender.address, principal=self._principal, source_id=source
        )
        if found.of_source > self._settings.connections_per_source:
            raise Refused(
                NackReason.RATE_LIMITED,
                f"The source {source!r} has {found.of_source - 1} connections, "
                f"at most {self._settings.connections_per_source} are allowed",
            )
        if storing.FALLBACK is not None:
            await storing.FALLBACK.settle(self._warehouse_id, principal=self._principal, source_id=source)
        opened = await log.open_source(
            self._warehouse_id,
            principal=self._principal,
            source_id=source,
            shard_name=shard,
            last_acked=last_acked,
        )
        if not opened.is_open:
            raise Refused(
                NackReason.RATE_LIMITED,
                f"No more sources are remembered: at most {self._settings.max_sources_per_caller} of a caller, and "
                f"{self._settings.max_sources} of the warehouse",
            )
        self._source = source
        self._expected = None if opened.last is None else opened.last + 1
        return opened.last

    async def _stored(self, batch: CdcBatch, size: int, before: "asyncio.Task[bytes] | None") -> bytes:
        try:
            found = events.parse(batch.events, self._settings)
            _take_memory(self._principal, size)
            try:
                outcome = await self._appended(batch, found, before)
            finally:
                IN_FLIGHT.give_back(self._principal, size)
            answer = self._judged(batch, found.count, outcome)
        except Refused as refused:
            return self._nacked(refused, batch.sequence_number, batch.correlation_id)
        self._failures = 0
        if self._retry_from is not None and self._retry_from[0] <= batch.sequence_number:
            self._retry_from = None
        return answer

    async def _appended(self, batch: CdcBatch, found: events.Events, before: "asyncio.Task[bytes] | None") -> Outcome:
        """Raises Refused."""
        source = batch.source_do_id or self._source
        if source is None:
            raise Refused(NackReason.INVALID_FORMAT, "sourceDoId is missing: send it here, or a connect message first")
        checksum = crc32(found.content)
        if not self._has_begun and before is not None:
            await asyncio.wait({before})  # the first number of a new source decides where it begins
        for attempt in range(_ATTEMPTS):
            try:
                if self._source != source:
                    await self._open(source, batch.source_shard_name or "", None)
                chosen = self._decisions.find(found.tables) or await self._decisions.decide(found.tables)
                sent = Batch(
                    self._principal, source, batch.sequence_number, found.count, found.content, said(chosen), checksum,
                    len(found.content),
                )  # fmt: skip
                outcome = await storing.store(
                    BATCHES, self._warehouse_id, self._decisions.caller, Item(sent, chosen), expected=self._expected
                )
            except Unstorable as error:
                raise Refused(NackReason.INVALID_FORMAT, f"The batch cannot be stored: {error}") from error
            except LakewardenError as error:
                raise _denied(error) from error
            except (LogUnavailable, FallbackFailed) as error:
                raise _unavailable(error) from error
            if outcome.expected is not None:
                self._expected = outcome.expected
            self._has_begun = self._has_begun or outcome.verdict is not Verdict.UNKNOWN
            if outcome.verdict is Verdict.UNKNOWN:
                self._decisions.forget(found.tables)
                if attempt:
                    self._source = None if self._source == source else self._source
            elif outcome.verdict is Verdict.GAP and before is not None and not before.done():
                await asyncio.wait({before})  # the one before it had to be decided on again, and was overtaken
            else:
                return outcome
        raise Refused(NackReason.INTERNAL_ERROR, "Rights or tables change all the time: send the batch again")

    def _judged(self, batch: CdcBatch, count: int, outcome: Outcome) -> bytes:
        """The acknowledgement. Raises Refused."""
        verdict, number = outcome.verdict, batch.sequence_number
        if verdict is Verdict.FULL:
            raise Refused(
                NackReason.BUFFER_FULL,
                f"Buffer is full: {outcome.buffered_bytes} bytes wait for the pipeline, "
                f"at most {self._settings.buffer_bytes} may",
            )
        if verdict is Verdict.GAP:
            if self._retry_from is not None and outcome.expected is not None:
                first, refused = self._retry_from
                if outcome.expected <= first <= number:
                    raise Refused(refused.reason, f"Batch {first} was refused before: {refused.message}")
            if storing.FALLBACK is not None and self._claims(outcome.expected):
                raise Refused(
                    NackReason.INTERNAL_ERROR,
                    f"The batches {outcome.expected} to {self._claimed} are not in the log: wait until the server that "
                    "acknowledged them as `fallback` has replayed them, or send them again",
                )
            raise Refused(
                NackReason.INVALID_SEQUENCE, f"sequenceNumber {number} was received, {outcome.expected} is expected"
            )
        if verdict is Verdict.DIFFERENT:
            raise Refused(
                NackReason.INVALID_SEQUENCE,
                f"sequenceNumber {number} was received before with other events, {outcome.expected} is expected",
            )
        if verdict in {Verdict.APPENDED, Verdict.KEPT}:
            BATCH_EVENTS.of(self._warehouse_id).observe(count)
        room = self._settings.fallback_bytes if verdict is Verdict.KEPT else self._settings.buffer_bytes
        utilization = outcome.buffered_bytes / room
        is_high = utilization * 100 >= self._settings.high_water_percent
        state = {
            Verdict.APPENDED: AckStatus.BUFFERED if is_high else AckStatus.OK,
            Verdict.KEPT: AckStatus.FALLBACK,
            Verdict.DUPLICATE: AckStatus.DUPLICATE,
            Verdict.PERSISTED: AckStatus.PERSISTED,
        }[verdict]
        return protocol.ack(
            batch,
            state,
            events=count if verdict in {Verdict.APPENDED, Verdict.KEPT} else 0,
            utilization=utilization,
            until_flush_ms=overview.until_flush_ms(self._warehouse_id, outcome.buffered_bytes),
        )

    def _claims(self, number: int | None) -> bool:
        """Whether the client says that this batch was acknowledged."""
        return number is not None and self._claimed is not None and number <= self._claimed

    async def _flushed(self, message: FlushRequest) -> bytes:
        try:
            is_shown = await self._sees_everything()
            result = await flushes.flush(self._warehouse_id, requested_by=self._principal)
        except Refused as refused:
            return self._nacked(refused, None, message.correlation_id)
        except LogUnavailable as error:
            return self._nacked(_unavailable(error), None, message.correlation_id)
        return protocol.flush_response(message.correlation_id, result if is_shown else flushes.without_names(result))

    async def _refuse_message(self, message: str, text: str = "") -> bytes:
        number, name = protocol.marks(text)
        return self._nacked(Refused(NackReason.INVALID_FORMAT, message), number, name)

    async def _refused(self, refused: Refused, number: int | None, name: str | None) -> bytes:
        return self._nacked(refused, number, name)

    def _nacked(self, refused: Refused, number: int | None, name: str | None) -> bytes:
        if refused.reason.should_retry and number is not None and self._retry_from is None:
            self._retry_from = (number, refused)
        answer = protocol.nack(
            refused,
            sequence_number=number,
            correlation_id=name,
            failures=self._failures,
            shortest_ms=self._settings.retry_ms,
        )
        self._failures += refused.reason.should_retry
        return answer

    def _too_fast(self) -> str:
        return (
            f"Too many messages: a connection may send {self._settings.messages_per_s} per second, "
            f"{self._settings.burst} of them at once"
        )


def _take_memory(principal: str, size: int) -> None:
    """Raises Refused."""
    if not IN_FLIGHT.take(principal, size):
        raise Refused(NackReason.BUFFER_FULL, "The server has as many batches in memory as it can hold")


def _denied(error: LakewardenError) -> Refused:
    reason = NackReason.INVALID_FORMAT if isinstance(error, _DENIED) else NackReason.INTERNAL_ERROR
    return Refused(reason, error.message)


def _unavailable(error: Exception) -> Refused:
    if isinstance(error, FallbackFull):
        return Refused(NackReason.BUFFER_FULL, f"The log is not available, nor is the fallback file: {error}")
    logger.warning("A batch could not be stored: %s", str(error).strip() or type(error).__name__)
    but = f" ({error})" if isinstance(error, FallbackFailed) else ""
    return Refused(NackReason.INTERNAL_ERROR, f"The log of the events is not available{but}; nothing was stored")


async def _done(content: bytes) -> bytes:
    return content
