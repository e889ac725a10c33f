from base64 import urlsafe_b64encode
from typing import Any

import pytest

from lakewarden.authn.bearer import MAX_TOKEN_BYTES, is_opaque, peek, token_of
from lakewarden.errors import NotAuthorized
from tests.unit.authn.identity_provider import unsigned_token


@pytest.mark.parametrize(
    ("authorization", "sentence"),
    [
        (None, "no Authorization header"),
        ("", "no Authorization header"),
        ("Basic YTpi", "does not use the Bearer scheme"),
        ("Bearer", "no token after 'Bearer'"),
        ("Bearer   ", "no token after 'Bearer'"),
        ("Bearer " + "a" * (MAX_TOKEN_BYTES + 1), "longer than 16384 bytes"),
        ("Bearer " + "a" * 100_000, "longer than 16384 bytes"),
        ("Bearer añb", "damaged"),
    ],
)
def test_token_of_unusable_header_says_what_is_wrong(authorization: str | None, sentence: str) -> None:
    with pytest.raises(NotAuthorized, match=sentence):
        token_of(authorization)


@pytest.mark.parametrize("authorization", ["Bearer a.b.c", "bearer a.b.c", "BEARER   a.b.c  "])
def test_token_of_bearer_in_any_case_and_spacing(authorization: str) -> None:
    assert token_of(authorization) == "a.b.c"


def test_peek_reads_what_routing_needs() -> None:
    seen = peek(
        unsigned_token({"alg": "RS256", "kid": "k"}, {"iss": "https://a", "aud": ["x", "y"], "more": {"deep": [1]}})
    )

    assert (seen.algorithm, seen.key_id, seen.issuer, seen.audiences) == ("RS256", "k", "https://a", ("x", "y"))


def test_peek_single_audience_and_none() -> None:
    assert peek(unsigned_token({"alg": "RS256"}, {"iss": "i", "aud": "x"})).audiences == ("x",)
    assert peek(unsigned_token({"alg": "RS256"}, {"iss": "i"})).audiences == ()


@pytest.mark.parametrize(
    ("claims", "expires_at", "is_service_account"),
    [
        ({}, None, False),
        ({"exp": 1_800_000_000, "sub": "system:serviceaccount:ns:a"}, 1_800_000_000.0, True),
        ({"exp": 1.5, "sub": "ada", "kubernetes.io": {}}, 1.5, True),
        ({"exp": "soon", "sub": ["system:serviceaccount:"], "kubernetes.io": None}, None, False),
        ({"exp": True, "sub": 7}, None, False),
        ({"exp": 10**400}, 253_402_300_799.0, False),
        ({"exp": -5}, 0.0, False),
    ],
)
def test_peek_reads_what_routes_a_service_account(
    claims: dict[str, Any], expires_at: float | None, *, is_service_account: bool
) -> None:
    seen = peek(unsigned_token({"alg": "RS256"}, {"iss": "i"} | claims))

    assert (seen.expires_at, seen.is_service_account) == (expires_at, is_service_account)


@pytest.mark.parametrize(
    ("token", "expected"),
    [("abc", True), ("ory_at_a.b", True), ("a.b.c.d.e", True), ("a/b+c~d==", True), ("a.b.c", False), ("a.b.", False)],
)
def test_token_without_the_form_of_a_jwt_is_opaque(token: str, *, expected: bool) -> None:
    assert is_opaque(token) is expected


@pytest.mark.parametrize("token", ["a b", "a=b", "=", "a\nb", "a\x00", "{}", "a,b", "\u00e9"])
def test_token_with_characters_of_none_is_refused(token: str) -> None:
    with pytest.raises(NotAuthorized, match="characters that access tokens cannot have"):
        is_opaque(token)


def _segment(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


GOOD = _segment(b'{"alg":"RS256"}')
NAMELESS = _segment(b'{"kid":"a"}')


@pytest.mark.parametrize(
    ("token", "sentence"),
    [
        ("opaque", "not a JWT"),
        ("a.b", "not a JWT"),
        ("a.b.c.d", "not a JWT"),
        ("a.b c.d", "not a JWT"),
        ("a.b.c.d.e", "encrypted"),
        ("a.b.c", "malformed"),
        (".".join((GOOD, _segment(b"[]"), "x")), "malformed"),
        (".".join((GOOD, _segment(b"{}"), "x")), "malformed"),
        (".".join((GOOD, _segment(b'{"iss":7}'), "x")), "malformed"),
        (".".join((GOOD, _segment(b'{"iss":"a"'), "x")), "malformed"),
        (".".join((NAMELESS, _segment(b'{"iss":"a"}'), "x")), "malformed"),
        (".".join((GOOD, _segment(b'{"a":' + b"[" * 9000 + b"]" * 2000 + b"}"), "x")), "malformed"),
        (".".join((_segment(b'{"x":' + b'{"a":' * 2000), GOOD, "x")), "malformed"),
        (".".join((_segment(b"\xff\xfe"), GOOD, "x")), "malformed"),
    ],
)
def test_peek_refuses_what_is_no_signed_jwt(token: str, sentence: str) -> None:
    with pytest.raises(NotAuthorized, match=sentence):
        peek(token)
