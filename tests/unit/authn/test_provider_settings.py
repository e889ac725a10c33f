import pytest

from lakewarden import backends, config
from lakewarden.authn import provider_settings
from lakewarden.authn.chain import AuthenticatorChain
from lakewarden.authn.provider import Introspection, OidcProvider
from lakewarden.errors import NotAuthorized, Unavailable
from tests.unit.authn.identity_provider import unsigned_token

MAIN = "LAKEWARDEN__OPENID__MAIN__"


def test_every_setting_of_a_provider_arrives() -> None:
    settings = config.read(
        {
            f"{MAIN}ISSUER": "https://a",
            f"{MAIN}AUDIENCE": "x,y",
            f"{MAIN}ADDITIONAL_ISSUERS": "https://b",
            f"{MAIN}SCOPE": "catalog",
            f"{MAIN}SUBJECT_CLAIM": "sub",
            f"{MAIN}ROLES_CLAIM": "realm_access.roles",
            f"{MAIN}NAME_CLAIM": "display",
            f"{MAIN}EMAIL_CLAIM": "mail",
            f"{MAIN}CLOCK_SKEW_S": "5",
            f"{MAIN}JWKS_URI": "https://a/keys",
            f"{MAIN}INTROSPECTION__CLIENT_ID": "lake",
            f"{MAIN}INTROSPECTION__CLIENT_SECRET": "hush",
            f"{MAIN}INTROSPECTION__URI": "https://a/ask",
            f"{MAIN}INTROSPECTION__ALL_TOKENS": "true",
            f"{MAIN}INTROSPECTION__RECHECK_AFTER_S": "7",
        }
    )

    assert provider_settings.provider("main", settings.openid["main"]) == OidcProvider(
        id="main",
        issuer="https://a",
        audiences=("x", "y"),
        additional_issuers=("https://b",),
        scope="catalog",
        subject_claims=("sub",),
        jwks_uri="https://a/keys",
        roles_claim="realm_access.roles",
        name_claim="display",
        email_claim="mail",
        clock_skew_s=5,
        introspection=Introspection("lake", "hush", "https://a/ask", all_tokens=True, recheck_after_s=7),
    )


def test_provider_without_a_client_does_not_introspect() -> None:
    settings = config.read({f"{MAIN}ISSUER": "https://a"})

    assert provider_settings.provider("main", settings.openid["main"]).introspection is None


def test_authenticator_is_built_from_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config.read(
        {
            f"{MAIN}ISSUER": "https://a",
            f"{MAIN}AUDIENCE": "x",
            "LAKEWARDEN__KUBERNETES__ENABLED": "true",
            "LAKEWARDEN__KUBERNETES__TOKEN_FILE": "/nowhere/token",
        }
    )
    monkeypatch.setattr(config, "current", lambda: settings)
    chain = backends.authenticator.__wrapped__()
    assert isinstance(chain, AuthenticatorChain)

    wrong_audience = unsigned_token({"alg": "RS256"}, {"iss": "https://a", "aud": "y"}, signature="AAAA")
    with pytest.raises(NotAuthorized, match="another audience"):
        chain.authenticate(f"Bearer {wrong_audience}")
    account = unsigned_token({"alg": "RS256"}, {"iss": "k", "sub": "system:serviceaccount:a:b"}, signature="AAAA")
    with pytest.raises(Unavailable):  # the server has no token of its own for requests to the cluster
        chain.authenticate(f"Bearer {account}")
