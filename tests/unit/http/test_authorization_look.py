"""What `/health` says of rights that OpenFGA has lost: known beside the requests, and asked for seldom."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from lakewarden import backends
from lakewarden.errors import Unavailable
from lakewarden.http import authorization_look, health
from lakewarden.http.authorization_look import AuthorizationLook


@dataclass
class Store:
    """Returns what a test has set, and counts."""

    says: Callable[[], bool] = lambda: False
    asked: int = 0

    def ask(self) -> bool:
        self.asked += 1
        return self.says()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    found = Store()
    monkeypatch.setattr(backends, "is_authorization_lost", found.ask)
    return found


def asked_now(look: AuthorizationLook) -> bool:
    """What it says after a look has ended."""
    look.is_lost()
    assert look._thread is not None
    look._thread.join(60)
    return look.is_lost()


def test_a_loss_is_told_and_so_is_its_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization_look, "_FRESH_S", 0.0)
    look = AuthorizationLook()
    assert not asked_now(look)
    store.says = lambda: True
    assert asked_now(look) or asked_now(look)
    store.says = lambda: False
    assert not asked_now(look) or not asked_now(look)


def test_it_is_not_asked_again_at_once(store: Store) -> None:
    look = AuthorizationLook()
    assert [asked_now(look) for _ in range(20)] == [False] * 20
    assert store.asked == 1


def test_one_that_does_not_answer_is_not_lost_and_delays_nobody(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization_look, "_FRESH_S", 0.0)
    release = threading.Event()

    def hang() -> bool:
        release.wait(60)
        raise Unavailable("it is not reachable")

    store.says = hang
    look = AuthorizationLook()
    assert [look.is_lost() for _ in range(20)] == [False] * 20
    assert store.asked == 1
    release.set()
    assert not asked_now(look)


def test_health_tells_a_loss_and_stays_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_up() -> bool:
        return True

    look = AuthorizationLook()
    monkeypatch.setattr(health.DATABASE, "is_up", is_up)
    monkeypatch.setattr(health, "AUTHORIZATION", look)
    monkeypatch.setattr(look, "is_lost", lambda: True)
    status, _, content = asyncio.run(health.answer("GET", b"/health"))
    assert (status, json.loads(content)["authorization"]) == (200, "lost")
    monkeypatch.setattr(look, "is_lost", lambda: False)
    _, _, content = asyncio.run(health.answer("GET", b"/health"))
    assert "authorization" not in json.loads(content)
