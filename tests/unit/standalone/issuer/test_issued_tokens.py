import time
from pathlib import Path

from standalone.issuer.issued_tokens import OPAQUE_TOKENS_FILE, OpaqueTokens, RevokedTokens
from standalone.issuer.state import StateDir


def test_opaque_token_stands_for_its_jwt_also_after_a_restart(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    token = OpaqueTokens(state).hand_out("a.b.c", expires_at=time.time() + 60)

    assert OpaqueTokens(state).find(token) == "a.b.c"
    assert token not in (tmp_path / OPAQUE_TOKENS_FILE).read_text()
    for other in ("", "a.b.c", token + "x", token.removeprefix("lwdev_")):
        assert OpaqueTokens(state).find(other) is None


def test_expired_opaque_token_is_forgotten(tmp_path: Path) -> None:
    tokens = OpaqueTokens(StateDir(tmp_path))
    old = tokens.hand_out("a.b.c", expires_at=time.time() - 1)
    assert tokens.find(old) is None

    tokens.hand_out("d.e.f", expires_at=time.time() + 60)
    assert "a.b.c" not in (tmp_path / OPAQUE_TOKENS_FILE).read_text()


def test_revocation_survives_a_restart(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    RevokedTokens(state).add("jti-1", expires_at=time.time() + 60)

    assert RevokedTokens(state).holds("jti-1")
    assert not RevokedTokens(state).holds("jti-2")
