"""One sink as a relay serves it: its lease, its connection and its position."""

import logging
import random
from collections.abc import Sequence
from typing import Final

from lakewarden.config import SinkConfig
from lakewarden.events import dead_letters, log
from lakewarden.events.envelope import encoded
from lakewarden.events.leases import Lease, LeaseLost
from lakewarden.events.log import Event
from lakewarden.events.news import News
from lakewarden.events.sinks.interface import EnsureMine, Message, Refused, Sink, SinkFailed

logger = logging.getLogger(__name__)

LONGEST_PAUSE_S: Final = 60.0
_SCAN: Final = 50_000  # positions that one statement may look at


class ServedSink:
    """`step` is called by one thread, again and again; `keep` by another one."""

    def __init__(
        self, name: str, settings: SinkConfig, *, holder: str, lease_s: float, source: str, news: News
    ) -> None:
        self._name, self._settings, self._source, self._news = name, settings, source, news
        self._lease = Lease(name, holder, seconds=lease_s)
        self._lease_s = lease_s
        self._position: int | None = None
        self._ahead: set[int] = set()  # positions beyond it that the sink has, too
        self._sink: Sink | None = None
        self._failures = 0
        self._nudges = 0
        self._is_lost = False
        self._may_have_letters = True

    def step(self) -> float:
        """Deliver the next batch; returns the seconds to wait before the next step."""
        self._nudges = self._news.nudges
        try:
            if self._position is None:
                self._position = self._acquired()
                if self._position is None:
                    return self._lease_s / 3
            if self._is_lost:
                self._lease.renew()
                self._is_lost = False
            return self._delivered(self._position)
        except LeaseLost as lost:
            logger.warning("%s", lost)
            self._position = None
            self._ahead.clear()  # the sink may have been set back
            self._disconnect()
            return 0.0
        except SinkFailed as error:
            return self._failed(error)

    def keep(self) -> None:
        """Renew the lease: a delivery may take longer, and there may be nothing to deliver."""
        if self._position is not None:
            try:
                self._lease.renew()
                self._may_have_letters = True
            except LeaseLost:  # the thread that delivers notices it
                self._is_lost = True
            self._news.nudge()

    def close(self) -> None:
        self._disconnect()
        if self._position is not None:
            self._lease.release()
            self._position = None

    def _acquired(self) -> int | None:
        position = self._lease.acquire(first=0 if self._settings.from_oldest else log.last_position())
        self._is_lost = False
        # events below the oldest one are gone: they are not looked for
        return None if position is None else max(position, log.first_position() - 1)

    def _disconnect(self) -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def _delivered(self, position: int) -> float:
        self._send_letters()
        end = min(self._news.end, position + _SCAN)
        if end <= position:
            self._news.wait_beyond(position, nudges=self._nudges, within_s=self._lease_s / 3)
            return 0.0
        settings = self._settings
        events = log.read(
            after=position, up_to=end, limit=settings.batch, types=settings.types, projects=settings.projects
        )
        if messages := [self._message(each) for each in events if each.position not in self._ahead]:
            self._lease.renew()  # a lost one is noticed before anything is sent
            self._send_batch(messages)
        self._reach(events[-1].position if len(events) == settings.batch else end, sent=len(messages))
        return 0.0

    def _send_batch(self, messages: Sequence[Message]) -> None:
        try:
            dead_letters.keep(self._name, self._send(messages))
        except SinkFailed as error:
            dead_letters.keep(self._name, error.refused)
            self._ahead |= error.ahead
            if error.done:
                self._reach(messages[error.done - 1].position, sent=error.done)
            raise

    def _reach(self, position: int, *, sent: int) -> None:
        passed = {each for each in self._ahead if each <= position}
        self._lease.advance(position, sent=sent + len(passed))
        self._position = position
        self._ahead -= passed

    def _send_letters(self) -> None:
        if not self._may_have_letters:
            return
        asked = dead_letters.asked_again(self._name, limit=self._settings.batch)
        self._may_have_letters = len(asked) == self._settings.batch
        if asked:
            self._lease.renew()
            for identifier, message in asked:
                try:
                    dead_letters.settle(identifier, self._send([message]))
                except SinkFailed as error:  # it must not delay all later events
                    dead_letters.settle(identifier, [Refused(message, str(error))])
                    raise

    def _send(self, messages: Sequence[Message]) -> Sequence[Refused]:
        self._sink = self._sink or build(self._settings, self._lease.ensure_held)
        refused = self._sink.deliver(messages)
        if self._failures:
            logger.info("the sink %r takes events again", self._name)
            self._failures = 0
        for each in refused:
            logger.error("the sink %r refused the event %s: %s", self._name, each.message.id, each.reason)
        return refused

    def _failed(self, error: SinkFailed) -> float:
        self._failures += 1
        self._disconnect()  # a producer may be broken permanently
        try:
            self._lease.failed(str(error))
        except LeaseLost:
            self._is_lost = True
        if self._failures == 1 or self._failures % 10 == 0:
            logger.warning("events for the sink %r wait, it is tried again: %s", self._name, error)
        pause_s = min(2.0**self._failures / 2, LONGEST_PAUSE_S) * random.uniform(0.5, 1)  # noqa: S311 no secret
        return min(pause_s, self._lease_s / 3)

    def _message(self, event: Event) -> Message:
        return Message(event.position, event.id, event.type, event.object_id, encoded(event, source=self._source))


def build(settings: SinkConfig, ensure_mine: EnsureMine) -> Sink:
    """Raises SinkFailed for options that the sink does not know."""
    if settings.kafka is not None:
        from lakewarden.events.sinks.kafka import KafkaSink  # noqa: PLC0415 librdkafka takes time to load

        return KafkaSink(settings.kafka, ensure_mine)
    if settings.nats is not None:
        from lakewarden.events.sinks.nats import NatsSink  # noqa: PLC0415 loaded where it is used

        return NatsSink(settings.nats, ensure_mine)
    if settings.webhook is not None:
        from lakewarden.events.sinks.webhook import WebhookSink  # noqa: PLC0415

        return WebhookSink(settings.webhook, ensure_mine)
    from lakewarden.events.sinks.log_sink import LogSink  # noqa: PLC0415

    return LogSink()
