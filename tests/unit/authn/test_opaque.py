"""Opaque tokens and introspected JWTs through the whole chain, with a provider in memory."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs

import pytest

from lakewarden.authn.chain import AuthenticatorChain
from lakewarden.authn.json_fetch import JsonObject, ServesNobody
from lakewarden.authn.provider import Introspection, OidcProvider
from lakewarden.errors import NotAuthorized, Unavailable
from tests.unit.authn.identity_provider import ISSUER, NOW, FakeClock, FakeIdentityProvider, chain_of

OTHER = "https://other.example.org"


@dataclass
class Introspected:
    """What each endpoint says about each token; everything else is not active."""

    answers: dict[str, dict[str, JsonObject]] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def say(self, token: str, *, at: str = ISSUER, **claims: Any) -> None:
        good = {"active": True, "aud": "lakewarden", "sub": "ada", "exp": NOW + 3600}
        self.answers.setdefault(at, {})[token] = {k: v for k, v in (good | claims).items() if v is not None}

    def forget(self, token: str, *, at: str = ISSUER) -> None:
        del self.answers[at][token]

    def post(self, url: str, body: bytes, _headers: Mapping[str, str]) -> JsonObject:
        at, token = url.removesuffix("/introspect"), parse_qs(body.decode())["token"][0]
        self.asked.append((at, token))
        if at in self.down:
            raise ServesNobody(url)
        return self.answers.get(at, {}).get(token, {"active": False})


def introspecting(
    id_: str = "oidc", *, issuer: str = ISSUER, audiences: tuple[str, ...] = ("lakewarden",), all_tokens: bool = False
) -> OidcProvider:
    asking = Introspection(client_id="l", client_secret="s", uri=f"{issuer}/introspect", all_tokens=all_tokens)
    return OidcProvider(id=id_, issuer=issuer, audiences=audiences, introspection=asking)


@pytest.fixture
def world() -> Introspected:
    return Introspected()


@pytest.fixture
def chain(world: Introspected, idp: FakeIdentityProvider, clock: FakeClock) -> AuthenticatorChain:
    return chain_of([introspecting()], fetch=idp.fetch, post=world.post, clock=clock)


def settle() -> None:
    for thread in threading.enumerate():
        if thread.name == "token-recheck":
            thread.join(timeout=60)


def test_active_token_names_its_principal(world: Introspected, chain: AuthenticatorChain) -> None:
    world.say("opaque", username="ada.l", client_id="spark", iss=ISSUER)

    principal = chain.authenticate("Bearer opaque")

    assert (principal.id, principal.name, principal.kind) == ("oidc~ada", "ada.l", "human")
    assert (principal.issuer, principal.expires_at) == (ISSUER, NOW + 3600)
    assert chain.find_known("Bearer opaque") is principal
    assert len(world.asked) == 1


def test_roles_come_with_the_answer(world: Introspected, idp: FakeIdentityProvider, clock: FakeClock) -> None:
    provider = replace(introspecting(), roles_claim="realm_access.roles")
    chain = chain_of([provider], fetch=idp.fetch, post=world.post, clock=clock)
    world.say("opaque", realm_access={"roles": ["writer"]})

    assert chain.authenticate("Bearer opaque").token_roles == ("writer",)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"exp": NOW - 61}, "has expired"),
        ({"exp": "tomorrow"}, "claim 'exp' is not valid"),
        ({"nbf": NOW + 61}, "not valid yet"),
        ({"aud": "account"}, "another audience"),
        ({"aud": None}, "lacks the claim 'aud'|another audience"),
        ({"aud": [7]}, "another audience"),
        ({"iss": "https://evil.example.org"}, "not trusted by this server"),
        ({"iss": 7}, "not trusted by this server"),
        ({"sub": None}, "names no subject"),
        ({"sub": {"deep": [1]}}, "'sub' is not valid"),
        ({"token_type": "refresh_token"}, "not a bearer access token"),
        ({"token_type": "DPoP"}, "not a bearer access token"),
        ({"token_type": 7}, "not a bearer access token"),
        ({"active": False}, "not active"),
    ],
)
def test_answer_that_breaks_a_rule_is_refused_and_asked_for_once(
    world: Introspected, chain: AuthenticatorChain, changed: dict[str, Any], sentence: str
) -> None:
    world.say("opaque", **changed)
    for _ in range(20):
        with pytest.raises(NotAuthorized, match=sentence):
            chain.authenticate("Bearer opaque")
    assert len(world.asked) == 1


def test_scope_rule_holds_for_the_answer(world: Introspected, idp: FakeIdentityProvider, clock: FakeClock) -> None:
    chain = chain_of([replace(introspecting(), scope="catalog")], fetch=idp.fetch, post=world.post, clock=clock)
    world.say("with", scope="openid catalog")
    world.say("without", scope="openid")

    assert chain.authenticate("Bearer with").id == "oidc~ada"
    with pytest.raises(NotAuthorized, match="lacks the scope"):
        chain.authenticate("Bearer without")


@pytest.mark.parametrize("token", ["a b", "ab\x00c", "<script>", "a,b", "{}", "\x7f", "==="])
def test_token_with_impossible_characters_reaches_no_provider(
    world: Introspected, chain: AuthenticatorChain, token: str
) -> None:
    with pytest.raises(NotAuthorized, match="damaged"):
        chain.authenticate(f"Bearer {token}")
    assert world.asked == []


def test_opaque_token_is_refused_where_nobody_introspects(authenticator: AuthenticatorChain) -> None:
    with pytest.raises(NotAuthorized, match="not a JWT"):
        authenticator.authenticate("Bearer opaque")


def test_providers_are_asked_in_order_until_one_says_active(
    world: Introspected, idp: FakeIdentityProvider, clock: FakeClock
) -> None:
    providers = [introspecting("zeta", issuer="https://z"), introspecting("alpha", issuer=OTHER), introspecting()]
    chain = chain_of(providers, fetch=idp.fetch, post=world.post, clock=clock)
    world.say("opaque", at=OTHER)
    world.say("opaque", at="https://z")

    assert chain.authenticate("Bearer opaque").id == "alpha~ada"
    assert [at for at, _ in world.asked] == [ISSUER, OTHER]


def test_two_providers_of_one_issuer_are_told_apart_by_audience(
    world: Introspected, idp: FakeIdentityProvider, clock: FakeClock
) -> None:
    providers = [introspecting(audiences=("people",)), introspecting("engines", audiences=("engines",))]
    chain = chain_of(providers, fetch=idp.fetch, post=world.post, clock=clock)
    for audience in ("people", "engines", "neither"):
        world.say(f"for-{audience}", aud=audience)

    assert chain.authenticate("Bearer for-people").id == "oidc~ada"
    assert chain.authenticate("Bearer for-engines").id == "engines~ada"
    with pytest.raises(NotAuthorized, match="another audience"):
        chain.authenticate("Bearer for-neither")


def test_provider_that_is_down_leaves_the_others_tokens_alone(
    world: Introspected, idp: FakeIdentityProvider, clock: FakeClock
) -> None:
    providers = [introspecting(), introspecting("other", issuer=OTHER)]
    chain = chain_of(providers, fetch=idp.fetch, post=world.post, clock=clock)
    world.down.add(ISSUER)
    world.say("theirs", at=OTHER)

    assert chain.authenticate("Bearer theirs").id == "other~ada"
    with pytest.raises(Unavailable, match="cannot be asked"):
        chain.authenticate("Bearer unknown")


def test_known_token_is_asked_about_again_in_the_background(
    world: Introspected, chain: AuthenticatorChain, clock: FakeClock
) -> None:
    world.say("opaque")
    chain.authenticate("Bearer opaque")
    world.say("opaque", name="Ada II")
    clock.advance(59)
    chain.authenticate("Bearer opaque")
    settle()
    assert len(world.asked) == 1

    clock.advance(1)
    assert chain.find_known("Bearer opaque") is not None
    settle()
    assert len(world.asked) == 2
    assert chain.authenticate("Bearer opaque").name == "Ada II"


def test_revoked_token_is_forgotten_at_once(world: Introspected, chain: AuthenticatorChain, clock: FakeClock) -> None:
    world.say("opaque")
    chain.authenticate("Bearer opaque")
    world.forget("opaque")
    clock.advance(60)
    chain.authenticate("Bearer opaque")
    settle()

    assert chain.find_known("Bearer opaque") is None
    with pytest.raises(NotAuthorized, match="not active"):
        chain.authenticate("Bearer opaque")


def test_revoked_token_that_lay_idle_is_not_believed_even_once(
    world: Introspected, chain: AuthenticatorChain, clock: FakeClock
) -> None:
    world.say("opaque")
    chain.authenticate("Bearer opaque")
    world.forget("opaque")
    clock.advance(300)

    assert chain.find_known("Bearer opaque") is None
    with pytest.raises(NotAuthorized, match="not active"):
        chain.authenticate("Bearer opaque")


def test_known_token_outlives_a_provider_that_is_down_for_five_intervals(
    world: Introspected, chain: AuthenticatorChain, clock: FakeClock
) -> None:
    world.say("opaque")
    chain.authenticate("Bearer opaque")
    world.down.add(ISSUER)
    for _ in range(4):
        clock.advance(60)
        assert chain.authenticate("Bearer opaque").id == "oidc~ada"
        assert chain.find_known("Bearer opaque") is not None
        settle()
    clock.advance(60)

    assert chain.find_known("Bearer opaque") is None
    with pytest.raises(Unavailable, match="could not be confirmed for 300 seconds"):
        chain.authenticate("Bearer opaque")
    world.down.clear()
    clock.advance(1)
    assert chain.authenticate("Bearer opaque").id == "oidc~ada"
    assert chain.find_known("Bearer opaque") is not None


def test_token_without_end_is_kept_five_minutes_while_the_provider_is_down(
    world: Introspected, chain: AuthenticatorChain, clock: FakeClock
) -> None:
    world.say("opaque", exp=None)
    assert chain.authenticate("Bearer opaque").expires_at == NOW + 300
    world.down.add(ISSUER)
    clock.advance(299)
    assert chain.authenticate("Bearer opaque").id == "oidc~ada"
    settle()
    clock.advance(1)

    with pytest.raises(Unavailable):
        chain.authenticate("Bearer opaque")


def test_token_without_end_lives_on_while_the_provider_says_active(
    world: Introspected, chain: AuthenticatorChain, clock: FakeClock
) -> None:
    world.say("opaque", exp=None)
    for _ in range(20):
        assert chain.authenticate("Bearer opaque").id == "oidc~ada"
        settle()
        clock.advance(60)


def test_signed_token_is_not_asked_about_by_default(
    world: Introspected, chain: AuthenticatorChain, idp: FakeIdentityProvider
) -> None:
    assert chain.authenticate(f"Bearer {idp.token()}").id == "oidc~ada"
    assert world.asked == []


@pytest.fixture
def revoking(world: Introspected, idp: FakeIdentityProvider, clock: FakeClock) -> AuthenticatorChain:
    return chain_of([introspecting(all_tokens=True)], fetch=idp.fetch, post=world.post, clock=clock)


def test_all_tokens_asks_about_signed_ones_too_and_again(
    world: Introspected, revoking: AuthenticatorChain, idp: FakeIdentityProvider, clock: FakeClock
) -> None:
    token = idp.token()
    world.say(token, name="Ada")
    assert revoking.authenticate(f"Bearer {token}").name == "Ada"

    world.forget(token)
    clock.advance(60)
    revoking.authenticate(f"Bearer {token}")
    settle()
    with pytest.raises(NotAuthorized, match="not active"):
        revoking.authenticate(f"Bearer {token}")


def test_all_tokens_lets_the_answer_complete_a_lightweight_token(
    world: Introspected, revoking: AuthenticatorChain, idp: FakeIdentityProvider
) -> None:
    token, stranger = idp.token(aud=None, sub=None), idp.token(aud=None, sub=None, jti="2")
    world.say(token, sub="ada", aud="lakewarden")
    world.say(stranger, sub="ada", aud="account")

    assert revoking.authenticate(f"Bearer {token}").id == "oidc~ada"
    with pytest.raises(NotAuthorized, match="another audience"):
        revoking.authenticate(f"Bearer {stranger}")


def test_all_tokens_asks_only_about_what_the_provider_has_signed_and_not_expired(
    world: Introspected, revoking: AuthenticatorChain, idp: FakeIdentityProvider
) -> None:
    forger = FakeIdentityProvider()
    forger.add_key("first")
    forged, expired = forger.token(), idp.token(exp=NOW - 61)
    for token in (forged, expired):
        world.say(token)
        with pytest.raises(NotAuthorized, match=r"signature|expired"):
            revoking.authenticate(f"Bearer {token}")
    assert world.asked == []


def test_idle_token_is_asked_about_by_everybody_who_brings_it_at_once(
    world: Introspected, chain: AuthenticatorChain, clock: FakeClock
) -> None:
    world.say("opaque")
    chain.authenticate("Bearer opaque")
    world.forget("opaque")
    clock.advance(300)
    refused: list[str] = []

    def bring() -> None:
        with pytest.raises(NotAuthorized) as caught:
            chain.authenticate("Bearer opaque")
        refused.append(caught.value.message)

    threads = [threading.Thread(target=bring) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(refused) == 8


def test_token_that_is_found_by_its_mark_is_fresh(
    world: Introspected, chain: AuthenticatorChain, clock: FakeClock
) -> None:
    world.say("opaque")
    mark = chain.mark_of("Bearer opaque")
    assert chain.find_marked(mark) is None
    principal = chain.authenticate("Bearer opaque")
    assert chain.find_marked(mark) is principal
    clock.advance(60)
    assert chain.find_marked(mark) is None, "it is due to be verified again"
    chain.find_known("Bearer opaque")
    settle()
    assert chain.find_marked(mark) == principal


def test_token_that_could_not_be_confirmed_is_not_found_by_its_mark(
    world: Introspected, chain: AuthenticatorChain, clock: FakeClock
) -> None:
    world.say("opaque")
    chain.authenticate("Bearer opaque")
    world.down.add(ISSUER)
    clock.advance(60)
    assert chain.find_known("Bearer opaque") is not None
    settle()
    assert chain.find_marked(chain.mark_of("Bearer opaque")) is None
