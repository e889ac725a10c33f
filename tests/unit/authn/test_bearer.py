from base64 import urlsafe_b64encode

import pytest

from lakewarden.authn.bearer import MAX_TOKEN_BYTES, peek, token_of
from lakewarden.errors import NotAuthorized
from tests.unit.authn.conftest import unsigned_token


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
