from datetime import timedelta
from typing import Final

import pytest
from django.utils import timezone

from console.models import ConsoleSession
from console.services import sessions
from console.services.sessions import Tokens
from lakewarden import config
from lakewarden.context import PrincipalId
from lakewarden.errors import Unavailable

ALICE: Final = PrincipalId("oidc~alice")
TOKENS: Final = Tokens(access="access-1", lifetime_s=3600, refresh="refresh-1", identity="identity-1")


def never(_: str) -> Tokens | None:
    raise AssertionError("the token is not refreshed")


@pytest.mark.usefixtures("database")
def test_a_session_is_found_by_its_cookie_alone() -> None:
    cookie = sessions.begin(ALICE, TOKENS)
    found = sessions.find(cookie, refresh=never)
    assert found is not None
    assert (found.principal, found.tokens) == (ALICE, TOKENS)
    assert sessions.find(cookie + "x", refresh=never) is None
    assert sessions.find("", refresh=never) is None


@pytest.mark.usefixtures("database")
def test_the_row_tells_neither_cookie_nor_tokens() -> None:
    cookie = sessions.begin(ALICE, TOKENS)
    row = ConsoleSession.objects.get()
    kept = bytes(row.id) + bytes(row.tokens)
    for secret in (cookie, "access-1", "refresh-1", "identity-1"):
        assert secret.encode() not in kept


@pytest.mark.usefixtures("database")
def test_the_tokens_of_a_row_cannot_be_given_to_another_user() -> None:
    cookie = sessions.begin(ALICE, TOKENS)
    ConsoleSession.objects.update(principal="oidc~mallory")
    assert sessions.find(cookie, refresh=never) is None


@pytest.mark.usefixtures("database")
def test_an_expired_access_token_is_refreshed_once_and_keeps_the_refresh_token() -> None:
    cookie = sessions.begin(ALICE, Tokens(access="access-1", lifetime_s=1, refresh="refresh-1", identity="identity-1"))
    asked: list[str] = []

    def refresh(token: str) -> Tokens:
        asked.append(token)
        return Tokens(access="access-2", lifetime_s=3600)

    for _ in range(2):
        found = sessions.find(cookie, refresh=refresh)
        assert found is not None
        assert found.tokens == Tokens(access="access-2", lifetime_s=3600, refresh="refresh-1", identity="identity-1")
    assert asked == ["refresh-1"]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("refresh", ["refresh-1", None])
def test_a_session_that_cannot_be_refreshed_ends(refresh: str | None) -> None:
    cookie = sessions.begin(ALICE, Tokens(access="access-1", lifetime_s=1, refresh=refresh))
    assert sessions.find(cookie, refresh=lambda _: None) is None
    assert not ConsoleSession.objects.exists()


@pytest.mark.usefixtures("database")
def test_a_silent_provider_does_not_end_the_session() -> None:
    cookie = sessions.begin(ALICE, Tokens(access="access-1", lifetime_s=1, refresh="refresh-1"))

    def silent(_: str) -> Tokens | None:
        raise Unavailable("silent")

    with pytest.raises(Unavailable):
        sessions.find(cookie, refresh=silent)
    assert sessions.find(cookie, refresh=lambda _: Tokens(access="access-2", lifetime_s=60)) is not None


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("member", "setting"), [("used_at", "idle_s"), ("created_at", "max_session_s")])
def test_an_old_session_is_not_open(member: str, setting: str) -> None:
    cookie = sessions.begin(ALICE, TOKENS)
    age = timedelta(seconds=getattr(config.current().console, setting) + 1)
    ConsoleSession.objects.update(**{member: timezone.now() - age})
    assert sessions.find(cookie, refresh=never) is None


@pytest.mark.usefixtures("database")
def test_a_further_session_ends_the_oldest_one_of_the_same_user_only() -> None:
    most = config.current().console.sessions_of_a_user
    other = sessions.begin(PrincipalId("oidc~bob"), TOKENS)
    cookies = [sessions.begin(ALICE, TOKENS) for _ in range(most + 1)]
    assert [sessions.find(cookie, refresh=never) is not None for cookie in cookies] == [False] + [True] * most
    assert sessions.find(other, refresh=never) is not None


@pytest.mark.usefixtures("database")
def test_an_ended_session_is_over() -> None:
    cookie = sessions.begin(ALICE, TOKENS)
    ended = sessions.end(cookie)
    assert ended is not None
    assert ended.tokens == TOKENS
    assert sessions.end(cookie) is None
    assert sessions.find(cookie, refresh=never) is None
