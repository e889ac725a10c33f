"""Writes events to the process's log: for development, and for collectors of logs."""

import logging
from collections.abc import Sequence

from lakewarden.events.sinks.interface import Message, Refused

logger = logging.getLogger("lakewarden.events")


class LogSink:
    def deliver(self, messages: Sequence[Message]) -> Sequence[Refused]:
        for each in messages:
            logger.info("%s", each.body.decode())
        return []

    def close(self) -> None:
        """There is nothing to close."""
