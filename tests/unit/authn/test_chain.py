"""How providers share the work, what is remembered of their tokens, and when a cluster is asked."""

from base64 import urlsafe_b64encode
from typing import Any

import pytest
from joserfc import jwt

from lakewarden.authn.chain import AuthenticatorChain
from lakewarden.authn.interface import VerifiedToken
from lakewarden.authn.provider import OidcProvider
from lakewarden.authn.verifier import Verified
from lakewarden.errors import NotAuthorized, Unavailable
from tests.unit.authn.identity_provider import ISSUER, NOW, FakeClock, FakeIdentityProvider, chain_of, unsigned_token


def test_required_scope_is_read_from_text_and_list(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    provider = OidcProvider(id="oidc", issuer=ISSUER, audiences=(), scope="catalog")
    authenticator = chain_of([provider], fetch=idp.fetch, clock=clock)

    granted: list[dict[str, Any]] = [{"scope": "openid catalog"}, {"scp": ["catalog"]}, {"scp": "catalog"}]
    for changed in granted:
        assert authenticator.authenticate(f"Bearer {idp.token(**changed)}").id == "oidc~ada"
    without: list[dict[str, Any]] = [{}, {"scope": "catalogue"}, {"scope": ["x", 7]}]
    for changed in without:
        with pytest.raises(NotAuthorized, match="lacks the scope 'catalog'"):
            authenticator.authenticate(f"Bearer {idp.token(**changed)}")


def test_two_providers_of_one_issuer_are_told_apart_by_audience(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    providers = [
        OidcProvider(id="zeta", issuer=ISSUER, audiences=("engines",)),
        OidcProvider(id="oidc", issuer=ISSUER, audiences=("people",)),
        OidcProvider(id="alpha", issuer=ISSUER, audiences=("engines",)),
    ]
    authenticator = chain_of(providers, fetch=idp.fetch, clock=clock)

    assert authenticator.authenticate(f"Bearer {idp.token(aud='people')}").id == "oidc~ada"
    assert authenticator.authenticate(f"Bearer {idp.token(aud='engines')}").id == "alpha~ada"
    assert authenticator.authenticate(f"Bearer {idp.token(aud=['engines', 'people'])}").id == "oidc~ada"


def test_key_of_one_provider_cannot_sign_for_another(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    other = FakeIdentityProvider(issuer="https://other.example.org")
    other.add_key("other")
    providers = [
        OidcProvider(id="oidc", issuer=ISSUER, audiences=()),
        OidcProvider(id="other", issuer=other.issuer, audiences=()),
    ]

    def fetch(url: str) -> dict[str, Any]:
        return other.fetch(url) if url.startswith(other.issuer) else idp.fetch(url)

    authenticator = chain_of(providers, fetch=fetch, clock=clock)
    assert authenticator.authenticate(f"Bearer {other.token(kid='other')}").id == "other~ada"

    with pytest.raises(NotAuthorized, match="does not publish"):
        authenticator.authenticate(f"Bearer {other.token(kid='other', iss=ISSUER)}")


def test_known_token_costs_no_verification(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = f"Bearer {idp.token()}"
    assert authenticator.find_known(header) is None
    first = authenticator.authenticate(header)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(jwt, "decode", fail)

    assert authenticator.authenticate(header) is first
    assert authenticator.find_known(header) is first


def test_known_token_expires_all_the_same(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, clock: FakeClock
) -> None:
    header = f"Bearer {idp.token(exp=NOW + 100)}"
    authenticator.authenticate(header)
    clock.advance(159)
    assert authenticator.authenticate(header).id == "oidc~ada"
    assert authenticator.find_marked(authenticator.mark_of(header)) is not None
    clock.advance(1)

    with pytest.raises(NotAuthorized, match="has expired"):
        authenticator.find_known(header)
    with pytest.raises(NotAuthorized, match="has expired"):
        authenticator.authenticate(header)
    assert authenticator.find_marked(authenticator.mark_of(header)) is None


def test_known_token_is_served_while_the_provider_is_down(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, clock: FakeClock
) -> None:
    header = f"Bearer {idp.token()}"
    authenticator.authenticate(header)
    idp.is_down = True
    clock.advance(30)

    assert authenticator.authenticate(header).id == "oidc~ada"
    assert authenticator.authenticate(f"Bearer {idp.token(sub='bob')}").id == "oidc~bob"


def test_provider_down_at_start_is_unavailable_and_recovers(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, clock: FakeClock
) -> None:
    header = f"Bearer {idp.token()}"
    idp.is_down = True
    with pytest.raises(Unavailable, match="cannot be reached"):
        authenticator.authenticate(header)

    idp.is_down = False
    clock.advance(1)

    assert authenticator.authenticate(header).id == "oidc~ada"


def test_withdrawn_key_takes_its_known_tokens_with_it(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, clock: FakeClock
) -> None:
    old = f"Bearer {idp.token()}"
    authenticator.authenticate(old)
    authenticator.authenticate(old)
    idp.add_key("second")
    new = idp.token(kid="second")
    del idp.keys["first"]
    clock.advance(10)

    assert authenticator.authenticate(f"Bearer {new}").id == "oidc~ada"
    assert authenticator.find_known(old) is None
    clock.advance(10)
    with pytest.raises(NotAuthorized, match="does not publish"):
        authenticator.authenticate(old)


@pytest.mark.parametrize(
    "document", [{}, {"issuer": ISSUER}, {"issuer": "https://evil", "jwks_uri": ISSUER}, {"issuer": 7, "jwks_uri": "x"}]
)
def test_discovery_that_does_not_fit_is_unavailable(
    provider: OidcProvider,
    idp: FakeIdentityProvider,
    clock: FakeClock,
    document: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    authenticator = chain_of([provider], fetch=lambda _: document, clock=clock)

    with pytest.raises(Unavailable):
        authenticator.authenticate(f"Bearer {idp.token()}")
    assert "openid-configuration" in caplog.text


def test_configured_key_address_replaces_discovery(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    provider = OidcProvider(id="oidc", issuer=ISSUER, audiences=(), jwks_uri="https://keys.example.org/jwks")
    authenticator = chain_of([provider], fetch=idp.fetch, clock=clock)

    authenticator.authenticate(f"Bearer {idp.token()}")

    assert idp.fetched == ["https://keys.example.org/jwks"]


LEAK = "tell-nobody"


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": LEAK},
        {"exp": [LEAK]},
        {"nbf": LEAK},
        {"iat": {"deep": LEAK}},
        {"aud": LEAK},
        {"aud": {"deep": [LEAK]}},
        {"iss": f"https://{LEAK}"},
        {"iss": {"deep": LEAK}},
        {"sub": [LEAK]},
        {"sub": {"a": {"b": {"c": LEAK}}}},
        {"scope": LEAK},
        {"jti": {"deep": LEAK}},
    ],
)
def test_message_repeats_nothing_that_a_token_says(
    idp: FakeIdentityProvider, clock: FakeClock, changed: dict[str, Any]
) -> None:
    provider = OidcProvider(id="oidc", issuer=ISSUER, audiences=("lakewarden",), scope="catalog")
    chain = chain_of([provider], fetch=idp.fetch, clock=clock)
    unknown_key = unsigned_token({"alg": "ES256", "kid": LEAK}, idp.claims(**changed), signature="AAAA")
    unknown_algorithm = unsigned_token({"alg": LEAK, "kid": "first"}, idp.claims(**changed), signature="AAAA")

    for token in (idp.token(**changed), unknown_key, unknown_algorithm):
        with pytest.raises(NotAuthorized) as caught:
            chain.authenticate(f"Bearer {token}")
        assert LEAK not in caught.value.message


def test_claims_that_are_nested_deeply_are_refused(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider
) -> None:
    deep: Any = "bottom"
    for _ in range(400):
        deep = {"a": [deep]}
    assert authenticator.authenticate(f"Bearer {idp.token(extra=deep)}").id == "oidc~ada"

    payload = urlsafe_b64encode(b'{"iss":"' + ISSUER.encode() + b'","x":' + b"[" * 4000 + b"]" * 4000 + b"}").decode()
    header = idp.token().split(".", maxsplit=1)[0]
    with pytest.raises(NotAuthorized, match=r"malformed|signature is not valid"):
        authenticator.authenticate(f"Bearer {header}.{payload.rstrip('=')}.AAAA")


def test_role_claim_of_a_signed_token_reaches_the_principal(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    provider = OidcProvider(id="oidc", issuer=ISSUER, audiences=(), roles_claim="realm_access.roles")
    chain = chain_of([provider], fetch=idp.fetch, clock=clock)

    with_roles = chain.authenticate(f"Bearer {idp.token(realm_access={'roles': ['writer', 'ops']})}")
    odd = chain.authenticate(f"Bearer {idp.token(realm_access='writer')}")

    assert (with_roles.token_roles, odd.token_roles) == (("writer", "ops"), ())


def test_clock_skew_is_the_provider_s(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    strict = OidcProvider(id="oidc", issuer=ISSUER, audiences=(), clock_skew_s=0)
    chain = chain_of([strict], fetch=idp.fetch, clock=clock)

    with pytest.raises(NotAuthorized, match="has expired"):
        chain.authenticate(f"Bearer {idp.token(exp=NOW)}")
    header = f"Bearer {idp.token(exp=NOW + 1)}"
    assert chain.authenticate(header).id == "oidc~ada"
    clock.advance(1)
    with pytest.raises(NotAuthorized, match="has expired"):
        chain.authenticate(header)


class FakeCluster:
    """A `Verifier` that accepts everything that is routed to it."""

    recheck_after_s: float | None = 10.0
    max_missed_rechecks = 5

    def __init__(self) -> None:
        self.verified: list[str] = []

    def stamp(self) -> int:
        return 0

    def verify(self, token: str, *, again: bool = False) -> Verified:  # noqa: ARG002 the contract's
        self.verified.append(token)
        principal = VerifiedToken("kubernetes~u1", "ns/a", None, "application", "k8s", NOW + 60)
        return Verified(principal, NOW + 60)


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "system:serviceaccount:ns:a", "iss": "https://cluster.local"},
        {"sub": "anything", "iss": "https://cluster.local", "kubernetes.io": {"namespace": "ns"}},
        {"sub": "system:serviceaccount:ns:a", "iss": "kubernetes/serviceaccount", "aud": None, "exp": None},
    ],
)
def test_service_account_of_no_trusted_issuer_goes_to_the_cluster(
    provider: OidcProvider, idp: FakeIdentityProvider, clock: FakeClock, claims: dict[str, Any]
) -> None:
    cluster = FakeCluster()
    chain = chain_of([provider], fetch=idp.fetch, clock=clock, cluster=cluster)

    assert chain.authenticate(f"Bearer {idp.token(**claims)}").id == "kubernetes~u1"
    assert idp.fetched == []


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"iss": "https://cluster.local"}, "is not trusted"),
        ({"iss": "https://cluster.local", "sub": ["system:serviceaccount:"]}, "is not trusted"),
        ({"sub": "system:serviceaccount:ns:a", "aud": "account"}, "another audience"),
        ({"sub": "system:serviceaccount:ns:a", "exp": NOW - 61}, "has expired"),
    ],
)
def test_what_is_a_provider_s_or_nobody_s_never_reaches_the_cluster(
    provider: OidcProvider, idp: FakeIdentityProvider, clock: FakeClock, claims: dict[str, Any], sentence: str
) -> None:
    cluster = FakeCluster()
    chain = chain_of([provider], fetch=idp.fetch, clock=clock, cluster=cluster)

    with pytest.raises(NotAuthorized, match=sentence):
        chain.authenticate(f"Bearer {idp.token(**claims)}")
    unsigned = unsigned_token({"alg": "none"}, {"iss": "https://c", "sub": "system:serviceaccount:ns:a"})
    with pytest.raises(NotAuthorized, match="accepted algorithm"):
        chain.authenticate(f"Bearer {unsigned}")
    assert cluster.verified == []


def test_cluster_alone_is_enough(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    chain = chain_of([], fetch=idp.fetch, clock=clock, cluster=FakeCluster())

    assert chain.authenticate(f"Bearer {idp.token(sub='system:serviceaccount:ns:a')}").id == "kubernetes~u1"


def test_keys_of_one_provider_change_and_the_tokens_of_another_stay_known(
    idp: FakeIdentityProvider, clock: FakeClock
) -> None:
    other = FakeIdentityProvider(issuer="https://other.example.org")
    other.add_key("other")
    providers = [
        OidcProvider(id="oidc", issuer=ISSUER, audiences=()),
        OidcProvider(id="other", issuer=other.issuer, audiences=()),
    ]

    def fetch(url: str) -> dict[str, Any]:
        return other.fetch(url) if url.startswith(other.issuer) else idp.fetch(url)

    chain = chain_of(providers, fetch=fetch, clock=clock)
    mine, theirs = f"Bearer {idp.token()}", f"Bearer {other.token(kid='other')}"
    for header in (mine, theirs):
        chain.authenticate(header)
    idp.add_key("second")
    clock.advance(10)
    chain.authenticate(f"Bearer {idp.token(kid='second')}")

    assert chain.find_known(mine) is None
    assert chain.find_known(theirs) is not None
