"""Which signed tokens one provider accepts: algorithms, claims, keys and headers."""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest
from joserfc import jws, jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from lakewarden.authn.chain import AuthenticatorChain
from lakewarden.errors import NotAuthorized
from tests.unit.authn.identity_provider import ISSUER, NOW, FakeIdentityProvider, unsigned_token


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
