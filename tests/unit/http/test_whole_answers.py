"""Answers that are written at once: the bytes of ASGI's two messages, and what is left to these."""

from types import SimpleNamespace
from typing import Any

import pytest

from lakewarden.hot.routes import Answer
from lakewarden.http.whole_answers import WholeAnswer

JSON = (b"content-type", b"application/json")
TWO = (b"content-length", b"2")


class Cycle(SimpleNamespace):
    """uvicorn's state of a request, as far as it is looked at."""

    def __init__(self, **state: Any) -> None:
        self.written: list[bytes] = []
        self.ended: list[str] = []
        usual: dict[str, Any] = {
            "disconnected": False,
            "response_started": False,
            "response_complete": False,
            "access_log": False,
            "keep_alive": True,
            "waiting_for_100_continue": True,
            "flow": SimpleNamespace(write_paused=False),
            "default_headers": [(b"date", b"today")],
            "message_event": SimpleNamespace(set=lambda: self.ended.append("event")),
            "transport": SimpleNamespace(write=self.written.append, close=lambda: self.ended.append("closed")),
            "on_response": lambda: self.ended.append("answered"),
        }
        super().__init__(**(usual | state))


def sent(cycle: Cycle, answer: Answer) -> bool:
    return WholeAnswer(cycle).send(answer)  # type: ignore[arg-type]


def test_head_and_body_are_one_write() -> None:
    cycle = Cycle()
    assert sent(cycle, (200, [JSON, TWO], b"{}"))
    assert cycle.written == [
        b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    ]
    assert cycle.response_started
    assert cycle.response_complete
    assert not cycle.waiting_for_100_continue
    assert cycle.ended == ["event", "answered"]


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body_announces_none(status: int) -> None:
    cycle = Cycle()
    assert sent(cycle, (status, [(b"etag", b'"x"')], b""))
    assert cycle.written[0].endswith(b'\r\netag: "x"\r\n\r\n')


def test_a_connection_that_is_not_kept_is_closed_and_says_so() -> None:
    cycle = Cycle(keep_alive=False)
    assert sent(cycle, (200, [TWO], b"{}"))
    assert b"\r\nconnection: close\r\n\r\n{}" in cycle.written[0]
    assert cycle.ended == ["event", "closed", "answered"]


@pytest.mark.parametrize(
    "answer",
    [
        (200, [JSON], b"{}"),
        (200, [JSON, (b"content-length", b"3")], b"{}"),
        (200, [JSON, TWO], b""),
        (204, [TWO], b""),
        (204, [], b"{}"),
        (200, [TWO, (b"connection", b"close")], b"{}"),
        (200, [TWO, (b"transfer-encoding", b"chunked")], b"{}"),
        (200, [TWO, (b"x-name", b"a\r\nx-injected: b")], b"{}"),
        (200, [TWO, (b"x-name", b"a\nb")], b"{}"),
        (200, [TWO, (b"x-name", b"a\rb")], b"{}"),
        (200, [TWO, (b"x-name", b"a\x00b")], b"{}"),
    ],
)
def test_what_is_not_plain_is_left_to_asgi_untouched(answer: Answer) -> None:
    cycle = Cycle()
    assert not sent(cycle, answer)
    assert not cycle.written
    assert not cycle.ended
    assert not cycle.response_started


@pytest.mark.parametrize(
    "state",
    [
        {"disconnected": True},
        {"response_started": True},
        {"access_log": True},
        {"flow": SimpleNamespace(write_paused=True)},
    ],
)
def test_a_connection_that_cannot_take_it_now_is_left_to_asgi(state: dict[str, Any]) -> None:
    cycle = Cycle(**state)
    assert not sent(cycle, (200, [TWO], b"{}"))
    assert cycle.written == []
