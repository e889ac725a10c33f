"""Log entries as JSON, one object a line, for programs that collect logs (`log.format`)."""

import json
import logging
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

REQUEST: Final[ContextVar[str | None]] = ContextVar("request", default=None)
"""The id of the request that this thread answers."""

MORE: Final[list[Callable[[], dict[str, str]]]] = []
"""Each returns members for an entry: a trace's, where there are traces."""


class JsonFormatter(logging.Formatter):
    """Members: `time` (RFC 3339, UTC), `level`, `logger`, `message`; where known `request_id`,
    `trace_id`, `span_id` and `error`.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        request = getattr(record, "request_id", None) or REQUEST.get()
        if request:
            entry["request_id"] = request
        for more in MORE:
            entry |= more()
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)
