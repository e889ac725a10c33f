import pytest

from lakewarden.http.conventions import IDENTITY, Cors, Headers, keep_private

ORIGIN = b"https://console.example.org"
ASKED = {b"origin": ORIGIN, b"access-control-request-method": b"POST"}


def finished(path: bytes, *headers: tuple[bytes, bytes]) -> dict[bytes, bytes]:
    answer: Headers = list(headers)
    keep_private(path, answer)
    assert len({name for name, _ in answer}) == len(answer)
    return dict(answer)


def test_an_answer_is_private_and_varies_on_who_asks() -> None:
    assert finished(b"/catalog/v1/config") == {b"cache-control": b"private", b"vary": IDENTITY}


def test_what_an_answer_varies_on_already_is_kept() -> None:
    merged = finished(b"/catalog/v1/x", (b"vary", b"Accept-Encoding, Authorization"))[b"vary"]
    assert merged == b"Accept-Encoding, Authorization, X-Project-Id, X-Project-Ident, X-Assume-Role"


def test_an_answer_that_says_who_may_keep_it_is_left_alone() -> None:
    assert finished(b"/management/v1/openapi.json", (b"cache-control", b"public")) == {b"cache-control": b"public"}


def test_health_is_everybodys() -> None:
    assert finished(b"/health") == {}


def test_preflight_of_a_configured_origin_is_allowed() -> None:
    found = Cors([ORIGIN.decode()]).preflight("OPTIONS", b"/catalog/v1/config", ASKED)
    assert found is not None
    assert b"DELETE" in dict(found)[b"access-control-allow-methods"]
    assert b"Authorization" in dict(found)[b"access-control-allow-headers"]


@pytest.mark.parametrize(
    ("method", "path", "asked"),
    [
        ("GET", b"/catalog/v1/config", ASKED),
        ("OPTIONS", b"/health", ASKED),
        ("OPTIONS", b"/catalog/v1/config", {b"origin": ORIGIN}),
        ("OPTIONS", b"/catalog/v1/config", {**ASKED, b"origin": b"https://console.example.org.evil"}),
        ("OPTIONS", b"/catalog/v1/config", {b"access-control-request-method": b"POST"}),
    ],
)
def test_anything_else_is_no_preflight(method: str, path: bytes, asked: dict[bytes, bytes]) -> None:
    assert Cors([ORIGIN.decode()]).preflight(method, path, asked) is None


def test_only_a_configured_origin_may_read_the_answer() -> None:
    cors = Cors([ORIGIN.decode()])
    for origin, allowed in ((ORIGIN, ORIGIN), (b"https://evil.example", None), (b"null", None)):
        headers: Headers = [(b"vary", b"Authorization")]
        cors.mark(b"/catalog/v1/config", {b"origin": origin}, headers)
        assert dict(headers)[b"vary"] == b"Authorization, Origin"
        assert dict(headers).get(b"access-control-allow-origin") == allowed


def test_a_star_allows_everybody() -> None:
    headers: Headers = []
    Cors(["*"]).mark(b"/catalog/v1/config", {b"origin": b"null"}, headers)
    assert dict(headers)[b"access-control-allow-origin"] == b"*"
