from pathlib import Path

import pytest

from standalone.issuer import refresh_tokens as module
from standalone.issuer.refresh_tokens import RefreshToken, RefreshTokens
from standalone.issuer.state import StateDir


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path)


def issue(tokens: RefreshTokens, *, family: str | None = None) -> str:
    token = tokens.new()
    tokens.add(token, client_id="console", subject="ada", scope="openid", family=family)
    return token


def found(tokens: RefreshTokens, token: str) -> RefreshToken:
    entry = tokens.find(token)
    assert entry is not None
    return entry


def test_token_survives_a_restart_and_is_not_in_the_file(state: StateDir) -> None:
    token = issue(RefreshTokens(state))

    assert found(RefreshTokens(state), token).subject == "ada"
    assert token not in (state.path / "refresh-tokens.json").read_text()


def test_token_can_be_used_up_once(state: StateDir) -> None:
    tokens = RefreshTokens(state)
    entry = found(tokens, issue(tokens))

    assert [tokens.use_up(entry), tokens.use_up(entry)] == [True, False]


def test_used_token_shown_again_ends_its_family_and_no_other(state: StateDir) -> None:
    tokens = RefreshTokens(state)
    stolen, unrelated = issue(tokens), issue(tokens)
    entry = found(tokens, stolen)
    tokens.use_up(entry)
    successor = issue(tokens, family=entry.family)
    assert found(tokens, successor).family == entry.family

    assert tokens.find(stolen) is None
    assert tokens.find(successor) is None
    assert found(RefreshTokens(state), unrelated).subject == "ada"


def test_token_expires(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LIFETIME_S", -1)
    tokens = RefreshTokens(state)

    assert tokens.find(issue(tokens)) is None
    assert tokens.find("never issued") is None
