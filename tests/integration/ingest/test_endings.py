"""Why a socket is closed by the server, and what is answered while the log is not available."""

import time
from dataclasses import replace
from typing import Any

import pytest

from ingest.services import log
from lakewarden.authn.interface import VerifiedToken
from lakewarden.errors import NotAuthorized, Unavailable
from tenants.models import Warehouse
from tests.integration.ingest.batches import logged, run
from tests.integration.ingest.changed import limits, log_gone
from tests.integration.ingest.messages import batch, event
from tests.servers.asgi_client import AsgiClient
from tests.servers.asgi_socket import opened
from tests.servers.stub_authenticator import StubAuthenticator

pytestmark = pytest.mark.usefixtures("lake")


def found_as(monkeypatch: pytest.MonkeyPatch, find: Any) -> None:
    monkeypatch.setattr(StubAuthenticator, "find_known", find)


def test_a_token_that_is_refused_from_now_on_ends_the_socket(lake: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> VerifiedToken:
        raise NotAuthorized("The token was revoked")

    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
        found_as(monkeypatch, refused)
        socket.send(batch(2))
        answers = [socket.receive()["status"]]  # it was waited for before the token was refused
        socket.send(batch(3))
        assert socket.closed() == (4401, "The token was revoked")
    assert answers == ["ok"]
    assert [row[2] for row in logged(lake.id)] == [1, 2]


def test_a_token_that_expires_ends_a_socket_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = time.time() + 0.5
    verify = StubAuthenticator.authenticate

    def until_then(self: StubAuthenticator, authorization: str | None) -> VerifiedToken:
        if time.time() > ends:
            raise NotAuthorized("The token has expired")
        return replace(verify(self, authorization), expires_at=ends)

    found_as(monkeypatch, until_then)
    with opened() as socket:
        assert socket.closed() == (4401, "The token has expired")


def test_a_token_that_cannot_be_verified_any_more_ends_the_socket_with_another_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unavailable(*_: Any) -> VerifiedToken:
        raise Unavailable("The identity provider cannot be reached")

    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
        found_as(monkeypatch, unavailable)
        socket.send(batch(2))
        assert socket.receive()["status"] == "ok"
        assert socket.closed() == (1013, "The identity provider cannot be reached")


def test_a_socket_on_which_nobody_speaks_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, silence_s=0.2)
    with opened() as socket:
        assert socket.closed() == (4408, "Nothing was received for 0.2 s")


def test_without_the_log_and_a_fallback_file_batches_are_refused_and_can_be_sent_again(
    lake: Warehouse, engine: AsgiClient
) -> None:
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
        with log_gone():
            answers = [socket.ask(batch(2)) for _ in range(3)]
            assert engine.post("/lakehouse/cdc", {"events": [event(1)]}).error() == (503, "ServiceUnavailableException")
        assert socket.ask(batch(2))["status"] == "ok"
    assert {(each["reason"], each["shouldRetry"]) for each in answers} == {("internal_error", True)}
    assert all(1000 <= each["retryDelayMs"] <= 1000 * 2**number for number, each in enumerate(answers))
    assert [row[2] for row in logged(lake.id)] == [1, 2]


def test_a_batch_that_is_in_a_snapshot_is_persisted(lake: Warehouse) -> None:
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
        run(log.mark_flushed(lake.id, upto=1))
        answer = socket.ask(batch(1))
    assert (answer["status"], answer["details"]["eventsProcessed"]) == ("persisted", 0)
