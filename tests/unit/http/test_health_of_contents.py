"""What `/health` says of the Kafka that takes contents: for a minute after it took nothing, or until it does again."""

import asyncio
import json
import time

import pytest

from lakewarden import board
from lakewarden.board import Board
from lakewarden.http import health
from lakewarden.http.authorization_look import AUTHORIZATION
from lakewarden.kafka_states import KafkaState


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Board:
    """The board of a server of one process, whose database answers."""

    async def is_up() -> bool:
        return True

    made = Board.alone()
    monkeypatch.setattr(board, "current", lambda: made)
    monkeypatch.setattr(health.DATABASE, "is_up", is_up)
    monkeypatch.setattr(AUTHORIZATION, "is_lost", lambda: False)
    return made


def told() -> tuple[int, str | None]:
    status, _, content = asyncio.run(health.answer("GET", b"/health"))
    return status, json.loads(content).get("contents")


def now_ms() -> int:
    return int(time.monotonic() * 1000)


def test_what_kafka_refused_is_told_until_it_takes_something(own: Board) -> None:
    assert told() == (200, None)
    own.note_contents(KafkaState.PASSWORD, now_ms())
    assert told() == (200, "Kafka refused the user name or password")
    own.note_contents(KafkaState.UP, now_ms())
    assert told() == (200, None)


def test_what_is_long_ago_is_not_told(own: Board) -> None:
    own.note_contents(KafkaState.TLS, now_ms() - 61_000)
    assert told() == (200, None)


@pytest.mark.parametrize("state", KafkaState)
def test_each_state_has_words_that_name_nobody(state: KafkaState) -> None:
    assert state.words
    assert not {":", "=", "%"} & set(state.words)
