"""Log entries as JSON: one line each, with the request's id where it is known."""

import json
import logging
import sys

from lakewarden.json_log import REQUEST, JsonFormatter


def entry(message: str, **extra: object) -> dict[str, str]:
    record = logging.LogRecord("lakewarden.x", logging.WARNING, "x.py", 1, message, ("é",), None)
    record.__dict__.update(extra)
    written = JsonFormatter().format(record)
    assert "\n" not in written
    found: dict[str, str] = json.loads(written)
    return found


def test_an_entry_is_one_line_with_its_members() -> None:
    found = entry("two\nlines of %s")
    assert found | {"time": ""} == {
        "time": "",
        "level": "WARNING",
        "logger": "lakewarden.x",
        "message": "two\nlines of é",
    }
    assert found["time"].endswith("+00:00")


def test_the_request_is_named_by_the_entry_or_by_the_thread() -> None:
    before = REQUEST.set("of-the-thread")
    try:
        assert entry("%s")["request_id"] == "of-the-thread"
        assert entry("%s", request_id="of-the-entry")["request_id"] == "of-the-entry"
    finally:
        REQUEST.reset(before)


def test_an_error_has_its_traceback() -> None:
    try:
        int("why")
    except ValueError:
        assert "ValueError: invalid literal" in entry("%s", exc_info=sys.exc_info())["error"]
