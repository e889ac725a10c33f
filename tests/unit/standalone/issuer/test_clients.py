import pytest
from authlib.oauth2.rfc6749 import InvalidScopeError

from standalone.issuer.clients import Client

CONFIDENTIAL = Client("engine", "s3cret", ("client_credentials",), ("catalog", "sign"), ("catalog",))
PUBLIC = Client("console", None, ("authorization_code",), ("openid",), ("openid",))


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "http://127.0.0.1:8181/console/callback",
        "http://localhost:3000/",
        "http://localhost/cb?x=1",
        "http://LOCALHOST:1/cb",
    ],
)
def test_redirect_to_any_port_of_this_machine_is_allowed(redirect_uri: str) -> None:
    assert PUBLIC.check_redirect_uri(redirect_uri)


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "",
        "/cb",
        "https://127.0.0.1/cb",
        "http://example.org/cb",
        "http://localhost.example.org/cb",
        "http://127.0.0.1@example.org/cb",
        "http://127.0.0.1:80\\@example.org/cb",
        "http://user@127.0.0.1/cb",
        "http://127.0.0.1/cb#fragment",
        "http://127.0.0.1:99999/cb",
        "http://127.0.0.1:x/cb",
        "http://[::1/cb",
        "http://127.0.0.1/cb\r\nSet-Cookie: a=b",
        "javascript:alert(1)",
    ],
)
def test_redirect_elsewhere_is_refused(redirect_uri: str) -> None:
    assert not PUBLIC.check_redirect_uri(redirect_uri)


def test_scope_defaults_and_is_limited() -> None:
    assert CONFIDENTIAL.get_allowed_scope(None) == "catalog"
    assert CONFIDENTIAL.get_allowed_scope("") == "catalog"
    assert CONFIDENTIAL.get_allowed_scope("sign catalog") == "sign catalog"
    with pytest.raises(InvalidScopeError) as refused:
        CONFIDENTIAL.get_allowed_scope("catalog openid")
    assert refused.value.description == "This client may ask for: catalog sign."


def test_secret_is_compared_as_a_whole() -> None:
    assert CONFIDENTIAL.check_client_secret("s3cret")
    for wrong in ("", "s3cre", "s3cret ", "ñ"):
        assert not CONFIDENTIAL.check_client_secret(wrong)
    assert not PUBLIC.check_client_secret("")


def test_public_client_authenticates_by_none_and_no_other_does() -> None:
    assert PUBLIC.check_endpoint_auth_method("none", "token")
    assert not PUBLIC.check_endpoint_auth_method("client_secret_post", "token")
    assert not CONFIDENTIAL.check_endpoint_auth_method("none", "token")
    assert CONFIDENTIAL.check_endpoint_auth_method("client_secret_basic", "token")
