"""Delivers the log of events to the sinks, in threads of a worker: each at least once, in order per object."""

import contextlib
import logging
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from django.db import DatabaseError, InterfaceError, close_old_connections, connections, transaction

from lakewarden import config
from lakewarden.config import SinkConfig
from lakewarden.events import log
from lakewarden.events.envelope import encoded
from lakewarden.events.leases import Lease, LeaseLost
from lakewarden.events.log import Event
from lakewarden.events.sinks.interface import Message, Refused, Sink, SinkFailed
from lakewarden.ids import new_id
from lakewarden.prepared_statements import execute

logger = logging.getLogger(__name__)

IDLE_S: Final = 0.25
"""Between two looks for new events when there were none."""
LONGEST_PAUSE_S: Final = 60.0


class Relay:
    """A thread that numbers new events, one for each sink, and one that keeps the leases of sinks that take long."""

    def __init__(self) -> None:
        settings = config.current().events
        holder = f"{socket.gethostname()}/{os.getpid()}/{new_id()}"
        self._stopping = threading.Event()
        self._threads = [_thread("event log", lambda: self._repeat(_number))]
        self._served: list[_Served] = []
        for name, sink in settings.sinks.items():
            served = _Served(name, sink, holder=holder, lease_s=settings.lease_s, source=settings.source)
            self._served.append(served)
            self._threads.append(_thread(f"sink {name}", lambda served=served: self._serve(served)))  # type: ignore[misc]
        if self._served:
            self._pause_s = settings.lease_s / 4
            self._threads.append(_thread("leases of sinks", lambda: self._repeat(self._keep)))

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self, *, within_s: float = 10) -> None:
        """A batch that is on its way is given up after `within_s`: another worker delivers it again."""
        self._stopping.set()
        deadline = time.monotonic() + within_s
        for each in self._threads:
            each.join(max(0.0, deadline - time.monotonic()))

    def _serve(self, served: "_Served") -> None:
        try:
            self._repeat(served.step)
        finally:
            with contextlib.suppress(DatabaseError, InterfaceError):  # the lease ends by itself
                served.close()

    def _keep(self) -> bool:
        for each in self._served:
            each.keep()
        raise _Later(self._pause_s)

    def _repeat(self, step: Callable[[], bool]) -> None:
        """`step` returns whether there may be more at once. A database that is away is waited for."""
        pause_s = 0.0
        while not self._stopping.wait(pause_s):
            try:
                close_old_connections()
                pause_s = 0.0 if step() else IDLE_S
            except _Later as later:
                pause_s = later.pause_s
            except (DatabaseError, InterfaceError) as error:
                logger.warning("events wait for the database: %s", str(error).strip())
                pause_s = 5.0
            except Exception:
                logger.exception("events are delivered later because of an unexpected error")
                pause_s = LONGEST_PAUSE_S


class _Later(Exception):
    def __init__(self, pause_s: float) -> None:
        super().__init__()
        self.pause_s = pause_s


class _Served:
    """One sink: its lease, its connection and its position."""

    def __init__(self, name: str, settings: SinkConfig, *, holder: str, lease_s: float, source: str) -> None:
        self._name, self._settings, self._source = name, settings, source
        self._lease = Lease(name, holder, seconds=lease_s)
        self._lease_s = lease_s
        self._position: int | None = None
        self._sink: Sink | None = None
        self._failures = 0
        self._renewed_at = 0.0

    def step(self) -> bool:
        """Deliver the next batch; whether there was one. Raises _Later when it must wait."""
        try:
            if self._position is None:
                self._position = self._lease.acquire(first=0 if self._settings.from_oldest else log.last_position())
                if self._position is None:
                    raise _Later(self._lease_s / 3)
            return self._delivered(self._position)
        except LeaseLost as lost:
            logger.warning("%s", lost)
            self._position = None
            self._disconnect()
            raise _Later(self._lease_s / 3) from None

    def keep(self) -> None:
        """Called by another thread, while a delivery may take longer than the lease."""
        if self._position is not None:
            with contextlib.suppress(LeaseLost):  # the thread that delivers notices it
                self._lease.renew()

    def close(self) -> None:
        self._disconnect()
        if self._position is not None:
            self._lease.release()
            self._position = None

    def _disconnect(self) -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def _delivered(self, position: int) -> bool:
        # read before the events: whatever is logged later lies above
        end = log.last_position()
        settings = self._settings
        events = log.read(after=position, limit=settings.batch, types=settings.types, projects=settings.projects)
        if events:
            self._lease.renew()  # a lost one is noticed before anything is sent
            self._send(events)
        last = events[-1].position if events else position
        reached = last if len(events) == settings.batch else max(end, last)
        if reached > position or time.monotonic() - self._renewed_at > self._lease_s / 3:
            self._lease.advance(reached)
            self._renewed_at = time.monotonic()
            self._position = reached
        return bool(events)

    def _send(self, events: list[Event]) -> None:
        messages = [
            Message(each.position, each.id, each.type, each.object_id, encoded(each, source=self._source))
            for each in events
        ]
        try:
            self._sink = self._sink or build(self._settings)
            refused = self._sink.deliver(messages)
        except SinkFailed as error:
            self._failures += 1
            self._disconnect()  # a producer may be broken permanently
            _set_aside(self._name, error.refused)
            if error.done:
                self._position = messages[error.done - 1].position
                self._lease.advance(self._position)
            pause_s = min(2.0**self._failures / 2, LONGEST_PAUSE_S) * random.uniform(0.5, 1)  # noqa: S311 no secret
            if self._failures == 1 or self._failures % 10 == 0:
                logger.warning("events for the sink %r wait, it is tried again: %s", self._name, error)
            self._lease.failed(str(error))
            raise _Later(min(pause_s, self._lease_s / 3)) from error
        if self._failures:
            logger.info("the sink %r takes events again", self._name)
            self._failures = 0
        _set_aside(self._name, refused)


def build(settings: SinkConfig) -> Sink:
    """Raises SinkFailed for options that the sink does not know."""
    if settings.kafka is not None:
        from lakewarden.events.sinks.kafka import KafkaSink  # noqa: PLC0415 librdkafka takes time to load

        return KafkaSink(settings.kafka)
    if settings.webhook is not None:
        from lakewarden.events.sinks.webhook import WebhookSink  # noqa: PLC0415

        return WebhookSink(settings.webhook)
    from lakewarden.events.sinks.log_sink import LogSink  # noqa: PLC0415

    return LogSink()


def _number() -> bool:
    return log.append_new() == log.BATCH


def _set_aside(sink: str, refused: Sequence[Refused]) -> None:
    for each in refused:
        logger.error("the sink %r never takes event %s, see event_dead_letter: %s", sink, each.message.id, each.reason)
        event = each.message.body.decode()
        with transaction.atomic():
            execute(_SET_ASIDE, [sink, each.message.position, each.message.id, event, each.reason[:500]])


def _thread(name: str, run: Callable[[], None]) -> threading.Thread:
    def running() -> None:
        try:
            run()
        finally:
            connections.close_all()  # of this thread

    return threading.Thread(target=running, name=name, daemon=True)


_SET_ASIDE: Final = """
    insert into event_dead_letter (sink, position, event_id, event, reason, at)
    values (%s, %s, %s, %s::text::jsonb, %s, now())
    on conflict (sink, position) do nothing
"""
