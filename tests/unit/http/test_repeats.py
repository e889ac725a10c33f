"""What is taken for the same request, and what is kept of it."""

from collections.abc import Mapping
from sys import getsizeof

import pytest

from lakewarden.hot.routes import HotRequest, Repeat
from lakewarden.http.repeats import LONGEST, Repeats, headers_of, key_of

GET = b"GET /catalog/v1/config HTTP/1.1\r\nHost: a\r\nX-Y: 1\r\n\r\n"


def key(data: bytes = GET, client: str = "10.0.0.1", scheme: str = "http") -> object:
    return key_of(data, client=client, scheme=scheme)


def test_the_same_bytes_of_the_same_peer_are_the_same_request() -> None:
    assert key() == key()
    assert len({key(), key(GET.replace(b"1\r", b"2\r")), key(client="10.0.0.2"), key(scheme="https")}) == 4


@pytest.mark.parametrize(
    "data",
    [
        GET[:-2],
        GET.replace(b"GET", b"POST"),
        GET.replace(b"/catalog/", b"/console/"),
        b"\r\n" + GET,
        GET.replace(b"X-Y: 1", b"X-Y: " + b"1" * LONGEST),
        b"",
    ],
)
def test_nothing_else_has_a_key(data: bytes) -> None:
    assert key(data) is None


class Read:
    def __init__(
        self, *, is_known: bool = True, caller: str = "anna", headers: Mapping[bytes, bytes] | None = None
    ) -> None:
        self.request = HotRequest("GET", "http", b"/catalog/v1/config", b"", headers or {b"host": b"a"})
        self.caller = caller
        self._is_known = is_known

    def is_known(self) -> bool:
        return self._is_known


def repeat(**options: object) -> Repeat:
    return Read(**options)  # type: ignore[arg-type, return-value]


def test_a_request_is_kept_when_it_comes_again() -> None:
    repeats, found, one = Repeats(100_000, percent=50), key_of(GET, client="", scheme="http"), repeat()
    assert found is not None
    assert repeats.keeper(found, print) is None
    assert repeats.keeper(found, print) is print
    assert repeats.find(found) is None
    repeats.keep(found, one, size=10)
    assert repeats.find(found) is one


def test_one_whose_caller_is_not_known_any_more_is_read_again() -> None:
    repeats, found = Repeats(100_000, percent=50), key_of(GET, client="", scheme="http")
    assert found is not None
    repeats.keep(found, repeat(is_known=False), size=10)
    assert repeats.find(found) is None


def test_a_caller_has_a_share_of_the_memory() -> None:
    repeats, keys = Repeats(100_000, percent=50), [(b"%d" % number, "", "http") for number in range(100)]
    repeats.keep((b"b", "", "http"), repeat(caller="ben"), size=10)
    for each in keys:
        repeats.keep(each, repeat(), size=1000)
    assert repeats.find((b"b", "", "http")) is not None
    assert 10 < sum(repeats.find(each) is not None for each in keys) < 20


def test_the_headers_of_a_request_are_read_as_they_came() -> None:
    assert headers_of(GET) == [(b"host", b"a"), (b"x-y", b"1")]


@pytest.mark.parametrize("headers", [{b"x" * 7000: b"1"}, {b"x%d" % number: b"" for number in range(200)}])
def test_what_headers_take_is_counted(headers: dict[bytes, bytes]) -> None:
    repeats = Repeats(100_000, percent=100)
    for number in range(100):
        repeats.keep((b"%d" % number, "", "http"), repeat(headers=headers), size=0)
    taken = getsizeof(headers) + sum(getsizeof(name) + getsizeof(value) for name, value in headers.items())
    assert 0 < len(repeats._kept._kept) <= 100_000 / taken
