"""A caller without a valid token cannot keep a revoked one valid, or make the server ask the provider without end."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import parse_qs

import pytest

from lakewarden.authn.chain import AuthenticatorChain, Surroundings
from lakewarden.authn.json_fetch import JsonObject, ServesNobody
from lakewarden.authn.provider import Introspection, OidcProvider
from lakewarden.errors import LakewardenError, NotAuthorized, Unavailable

ISSUER = "https://id.example.org"
RECHECK_S = 0.1
INTERVALS = 5
PATIENCE_S = 30.0
"""The time limit for something that takes RECHECK_S * INTERVALS on an idle machine."""


@dataclass
class SlowProvider:
    """Knows the tokens in `active`; answers slowly for all others, and not at all when it is down."""

    active: set[str] = field(default_factory=set)
    takes_s: float = 0.05
    is_down: bool = False

    def post(self, url: str, body: bytes, _headers: Mapping[str, str]) -> JsonObject:
        token = parse_qs(body.decode())["token"][0]
        if self.is_down:
            raise ServesNobody(url)
        if token not in self.active:
            time.sleep(self.takes_s)
            return {"active": False}
        return {"active": True, "aud": "lakewarden", "sub": "mallory", "exp": time.time() + 3600}

    def chain(self) -> AuthenticatorChain:
        asking = Introspection(
            client_id="lakewarden",
            client_secret="secret",
            uri=f"{ISSUER}/introspect",
            recheck_after_s=RECHECK_S,
            max_missed_rechecks=INTERVALS,
        )
        provider = OidcProvider(id="oidc", issuer=ISSUER, audiences=("lakewarden",), introspection=asking)
        return AuthenticatorChain([provider], surroundings=Surroundings(post=self.post))


@contextmanager
def bogus_tokens(chain: AuthenticatorChain, *, threads: int, source: str = "192.0.2.1") -> Iterator[None]:
    """During the block so many threads send one made-up token after the other."""
    numbers, is_over = count(), threading.Event()

    def bring() -> None:
        while not is_over.is_set():
            with pytest.raises(LakewardenError):
                chain.authenticate(f"Bearer bogus-{next(numbers)}", source=source)

    running = [threading.Thread(target=bring) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in running:
            thread.join(timeout=10)


def refusal_within(seconds: float, chain: AuthenticatorChain, token: str) -> LakewardenError | None:
    """The error with which the token was refused before `seconds` were over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            chain.authenticate(f"Bearer {token}", source="192.0.2.2")
        except LakewardenError as error:
            return error
        time.sleep(RECHECK_S / 4)
    return None


def test_a_storm_of_bogus_tokens_does_not_keep_a_revoked_token_accepted() -> None:
    """Rights: none, only a token that was revoked; twelve threads of made-up tokens."""
    provider = SlowProvider({"mine"})
    chain = provider.chain()
    chain.authenticate("Bearer mine")
    with bogus_tokens(chain, threads=12):
        provider.active.clear()
        assert isinstance(refusal_within(PATIENCE_S, chain, "mine"), NotAuthorized)


def test_a_token_in_use_is_refused_when_nobody_confirms_it() -> None:
    """Rights: none, only a token that was revoked while its provider is unavailable."""
    provider = SlowProvider({"mine"})
    chain = provider.chain()
    chain.authenticate("Bearer mine")
    provider.is_down = True
    refused = refusal_within(PATIENCE_S, chain, "mine")
    assert isinstance(refused, Unavailable)
    assert "confirm" in refused.message


def test_a_storm_from_one_address_leaves_room_for_the_first_token_of_another() -> None:
    """Rights: none; twelve threads of made-up tokens from one address."""
    provider = SlowProvider({"new"}, takes_s=0.4)
    chain = provider.chain()
    with bogus_tokens(chain, threads=12):
        time.sleep(0.2)  # the made-up tokens are being verified
        assert chain.authenticate("Bearer new", source="192.0.2.2").id == "oidc~mallory"
