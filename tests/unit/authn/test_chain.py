import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest
from joserfc import jws, jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from lakewarden.authn.chain import AuthenticatorChain
from lakewarden.authn.interface import VerifiedToken
from lakewarden.authn.provider import OidcProvider
from lakewarden.authn.verifier import Verified
from lakewarden.errors import NotAuthorized, Unavailable
from tests.unit.authn.identity_provider import ISSUER, NOW, FakeClock, FakeIdentityProvider, chain_of, unsigned_token


@pytest.fixture(scope="module")
def rsa_key() -> RSAKey:
    return RSAKey.generate_key(2048)


def test_good_token_names_its_principal(authenticator: AuthenticatorChain, idp: FakeIdentityProvider) -> None:
    token = idp.token(sub="ada", name="Ada Lovelace", email="ada@example.org", exp=NOW + 60)

    principal = authenticator.authenticate(f"Bearer {token}")

    assert principal.id == "oidc~ada"
    assert (principal.name, principal.email, principal.kind) == ("Ada Lovelace", "ada@example.org", "human")
    assert (principal.issuer, principal.expires_at, principal.token_roles) == (ISSUER, NOW + 60, ())


@pytest.mark.parametrize("alg", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_rsa_algorithms_are_accepted(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, rsa_key: RSAKey, alg: str
) -> None:
    idp.add_key("rsa", rsa_key)

    assert authenticator.authenticate(f"Bearer {idp.token(kid='rsa', alg=alg)}").id == "oidc~ada"


@pytest.mark.parametrize(("alg", "curve"), [("ES256", "P-256"), ("ES384", "P-384"), ("ES512", "P-521")])
def test_elliptic_curve_algorithms_are_accepted(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, alg: str, curve: Any
) -> None:
    idp.add_key("ec", ECKey.generate_key(curve))

    assert authenticator.authenticate(f"Bearer {idp.token(kid='ec', alg=alg)}").id == "oidc~ada"


def test_eddsa_is_accepted_without_a_warning(authenticator: AuthenticatorChain, idp: FakeIdentityProvider) -> None:
    key = idp.add_key("ed", OKPKey.generate_key("Ed25519"))
    registry = jws.JWSRegistry(algorithms=["EdDSA"])
    with pytest.warns(Warning, match="EdDSA is deprecated"):
        token = jwt.encode({"alg": "EdDSA", "kid": "ed"}, idp.claims(), key, registry=registry)

    assert authenticator.authenticate(f"Bearer {token}").id == "oidc~ada"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"exp": NOW - 61}, "has expired"),
        ({"exp": None}, "lacks the claim 'exp'"),
        ({"exp": "tomorrow"}, "claim 'exp' is not valid"),
        ({"exp": True}, "claim 'exp' is not valid"),
        ({"exp": float("nan")}, "malformed"),
        ({"nbf": NOW + 61}, "not valid yet"),
        ({"nbf": "x"}, "not valid yet"),
        ({"iat": NOW + 61}, "issued in the future"),
        ({"aud": "account"}, "another audience"),
        ({"aud": ["account", "other"]}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": []}, "another audience"),
        ({"iss": "https://evil.example.org"}, "issuer is not trusted by this server"),
        ({"iss": ISSUER + "/x"}, "is not trusted"),
        ({"sub": None}, "names no subject"),
    ],
)
def test_token_with_wrong_claim_is_refused(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(NotAuthorized, match=sentence):
        authenticator.authenticate(f"Bearer {idp.token(**changed)}")


@pytest.mark.parametrize(
    "changed", [{"exp": NOW - 59}, {"nbf": NOW + 59}, {"iat": NOW + 59}, {"aud": ["a", "lakewarden"]}]
)
def test_token_within_the_clock_skew_is_accepted(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, changed: dict[str, Any]
) -> None:
    assert authenticator.authenticate(f"Bearer {idp.token(**changed)}").id == "oidc~ada"


def test_unsigned_token_is_refused_before_any_fetch(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider
) -> None:
    for alg in ("none", "None", "NONE", "nOnE", ""):
        with pytest.raises(NotAuthorized, match="not signed with an accepted algorithm"):
            authenticator.authenticate(f"Bearer {unsigned_token({'alg': alg, 'kid': 'first'}, idp.claims())}")
    assert idp.fetched == []


@pytest.mark.parametrize("form", ["pem", "der", "modulus"])
@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
def test_hmac_with_the_public_key_as_secret_is_refused(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, rsa_key: RSAKey, *, alg: str, form: str
) -> None:
    idp.add_key("rsa", rsa_key)
    secret = {
        "pem": rsa_key.as_pem(private=False),
        "der": rsa_key.as_der(private=False),
        "modulus": urlsafe_b64decode(str(rsa_key.as_dict(private=False)["n"]) + "=="),
    }[form]
    signed = unsigned_token({"alg": alg, "kid": "rsa"}, idp.claims()).rstrip(".")
    mac = hmac.digest(secret, signed.encode(), alg.replace("HS", "sha"))

    with pytest.raises(NotAuthorized, match="not signed with an accepted algorithm"):
        authenticator.authenticate(f"Bearer {signed}.{urlsafe_b64encode(mac).decode().rstrip('=')}")


def test_published_symmetric_key_proves_nothing(authenticator: AuthenticatorChain, idp: FakeIdentityProvider) -> None:
    secret = OctKey.generate_key(256, {"kid": "oct"})
    idp.extra_jwks.append(dict(secret.as_dict(private=True)))
    token = jwt.encode({"alg": "HS256", "kid": "oct"}, idp.claims(), secret)

    with pytest.raises(NotAuthorized, match="not signed with an accepted algorithm"):
        authenticator.authenticate(f"Bearer {token}")


def test_key_of_somebody_else_with_the_same_id_is_refused(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider
) -> None:
    forger = FakeIdentityProvider()
    forger.add_key("first")

    with pytest.raises(NotAuthorized, match="signature is not valid"):
        authenticator.authenticate(f"Bearer {forger.token()}")


@pytest.mark.parametrize("part", [0, 1, 2])
def test_changed_token_is_refused(authenticator: AuthenticatorChain, idp: FakeIdentityProvider, part: int) -> None:
    parts = idp.token(header={"typ": "at+jwt"}).split(".")
    other = idp.token(sub="eve", header={"typ": "JWT"}).split(".")
    parts[part] = other[part]

    with pytest.raises(NotAuthorized, match="signature is not valid"):
        authenticator.authenticate(f"Bearer {'.'.join(parts)}")


def test_algorithm_that_does_not_fit_the_key_is_refused(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider
) -> None:
    token = unsigned_token({"alg": "RS256", "kid": "first"}, idp.claims(), signature="AAAA")

    with pytest.raises(NotAuthorized, match="signature is not valid"):
        authenticator.authenticate(f"Bearer {token}")


def test_key_that_is_bound_to_one_algorithm_refuses_others(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider, rsa_key: RSAKey
) -> None:
    idp.keys["rsa"] = RSAKey.import_key(rsa_key.as_dict(private=True) | {"kid": "rsa", "alg": "RS256"})
    unbound = RSAKey.import_key(rsa_key.as_dict(private=True) | {"kid": "rsa"})
    token = jwt.encode({"alg": "PS256", "kid": "rsa"}, idp.claims(), unbound, ["PS256"])

    with pytest.raises(NotAuthorized, match="signature is not valid"):
        authenticator.authenticate(f"Bearer {token}")


def test_unknown_critical_header_is_refused(authenticator: AuthenticatorChain, idp: FakeIdentityProvider) -> None:
    token = unsigned_token(
        {"alg": "ES256", "kid": "first", "crit": ["b64"], "b64": False}, idp.claims(), signature="AAAA"
    )

    with pytest.raises(NotAuthorized, match="signature is not valid"):
        authenticator.authenticate(f"Bearer {token}")


def test_header_fields_that_nobody_registered_do_no_harm(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider
) -> None:
    registry = jws.JWSRegistry(algorithms=["ES256"], strict_check_header=False)
    header = {"alg": "ES256", "kid": "first", "x-provider": "y" * 600}
    token = jwt.encode(header, idp.claims(), idp.keys["first"], registry=registry)

    with pytest.raises(Exception, match="exceeded_size"):
        jwt.decode(token, idp.keys["first"])
    assert authenticator.authenticate(f"Bearer {token}").id == "oidc~ada"


def test_token_without_key_id_works_while_there_is_one_key(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider
) -> None:
    token = jwt.encode({"alg": "ES256"}, idp.claims(), ECKey.import_key(idp.keys["first"].as_dict(private=True)))
    assert "kid" not in jws.extract_compact(token.encode()).headers()

    assert authenticator.authenticate(f"Bearer {token}").id == "oidc~ada"


def test_token_without_key_id_is_refused_among_several_keys(
    authenticator: AuthenticatorChain, idp: FakeIdentityProvider
) -> None:
    idp.add_key("second")
    token = jwt.encode({"alg": "ES256"}, idp.claims(), idp.keys["first"])

    with pytest.raises(NotAuthorized, match="does not say which key"):
        authenticator.authenticate(f"Bearer {token}")


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
    clock.advance(1)

    with pytest.raises(NotAuthorized, match="has expired"):
        authenticator.find_known(header)
    with pytest.raises(NotAuthorized, match="has expired"):
        authenticator.authenticate(header)


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
