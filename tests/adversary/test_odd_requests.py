"""Bytes that servers and proxies read in different ways: the short way and the ordinary one read them alike."""

import asyncio

import pytest

from lakewarden import asgi
from lakewarden.http.repeats import key_of
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import run
from tests.servers.wire import Wire

_PATIENCE_S = 60
_LAST = b"GET /health/live HTTP/1.1\r\nHost: catalog.test\r\n\r\n"
_GONE = (b"x-request-id: ", b"date: ")

GET = "GET {path} HTTP/1.1\r\nHost: catalog.test\r\nAuthorization: Bearer engine\r\n"
POST = "POST {path} HTTP/1.1\r\nHost: catalog.test\r\nAuthorization: Bearer engine\r\n"
BODY = '{{"requirements":[],"updates":[]}}'
SMUGGLED = "HEAD {path} HTTP/1.1\r\nHost: catalog.test\r\nAuthorization: Bearer engine\r\n\r\n"

ODD = {
    "a length of nothing": GET + "Content-Length: 0\r\n\r\n",
    "a length and chunks": GET + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": GET + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "two equal lengths": GET + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "a length with a sign": GET + "Content-Length: +0\r\n\r\n",
    "chunks": GET + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks that hold a request": GET + "Transfer-Encoding: chunked\r\n\r\n5\r\nHEAD \r\n0\r\n\r\n",
    "chunks under another name": GET + "Transfer-Encoding: xchunked\r\n\r\n",
    "chunks, and something after": GET + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a space before the colon": GET + "X-Other : 1\r\n\r\n",
    "a folded header": GET + "X-Other: 1\r\n 2\r\n\r\n",
    "a folded token": "GET {path} HTTP/1.1\r\nHost: catalog.test\r\nAuthorization: Bearer\r\n engine\r\n\r\n",
    "a bare line feed": GET.replace("\r\n", "\n") + "\n",
    "a bare carriage return": GET + "X-Other: a\rb\r\n\r\n",
    "a null byte": GET + "X-Other: a\0b\r\n\r\n",
    "two hosts": GET + "Host: other.test\r\n\r\n",
    "two tokens": GET + "Authorization: Bearer reader\r\n\r\n",
    "the same token twice": GET + "Authorization: Bearer engine\r\n\r\n",
    "a token with an underscore": GET.replace("Authorization", "Authorization_") + "\r\n",
    "no host": "GET {path} HTTP/1.1\r\nAuthorization: Bearer engine\r\n\r\n",
    "HTTP/1.0": GET.replace("HTTP/1.1", "HTTP/1.0") + "\r\n",
    "HTTP/1.0, kept alive": GET.replace("HTTP/1.1", "HTTP/1.0") + "Connection: keep-alive\r\n\r\n",
    "HTTP/1.2": GET.replace("HTTP/1.1", "HTTP/1.2") + "\r\n",
    "an absolute target": GET.replace("{path}", "http://other.test{path}") + "\r\n",
    "a fragment": GET.replace("{path}", "{path}#there") + "\r\n",
    "two slashes": GET.replace("{path}", "/{path}") + "\r\n",
    "dots": GET.replace("/catalog/", "/catalog/../catalog/").replace("{path}", "/catalog/..{path}") + "\r\n",
    "an encoded slash": GET.replace("{path}", "{path}%2Forders") + "\r\n",
    "a closed connection": GET + "Connection: close\r\n\r\n",
    "an upgrade": GET + "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "lines before": "\r\n\r\n" + GET + "\r\n",
    "a line after": GET + "\r\n\r\n",
    "a lower-case method": GET.replace("GET", "get", 1) + "\r\n",
    "another method": GET.replace("GET", "BREW", 1) + "\r\n",
    "trailers": POST + "Transfer-Encoding: chunked\r\n\r\n0\r\nX-Project-Id: other\r\n\r\n",
    "a commit, then a read": POST + f"Content-Length: {len(BODY) - 2}\r\n\r\n" + BODY + GET + "\r\n",
    "a read, then a commit, then a read": (
        GET + "\r\n" + POST + f"Content-Length: {len(BODY) - 2}\r\n\r\n" + BODY + GET + "\r\n"
    ),
    "a request in a body": POST + "Content-Length: {smuggled}\r\n\r\n" + SMUGGLED,
    "three reads": 3 * (GET + "\r\n"),
    "an id of its own": GET + "X-Request-Id: mine\r\n\r\n",
    "an id with a line break": GET + "X-Request-Id: a%0d%0ab\r\n\r\n",
    "headers of a proxy": GET + "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: evil.test\r\n\r\n",
}


def heard(wire: Wire, sent: bytes, *, one_by_one: bool = False) -> list[bytes]:
    """All lines that come for these bytes, and whether the connection was closed; ids and dates are left out."""

    async def exchange() -> list[bytes]:
        for piece in [sent[at : at + 1] for at in range(len(sent))] if one_by_one else [sent]:
            if not wire.transport.is_closed:
                wire.connection.data_received(piece)
        if not wire.transport.is_closed:
            wire.connection.data_received(_LAST)
        async with asyncio.timeout(_PATIENCE_S):
            while not (wire.transport.is_closed or b'"status":"up"' in wire.transport.received):
                wire.transport.arrived.clear()
                await wire.transport.arrived.wait()
        lines = wire.transport.received.split(b"\r\n")
        return [line for line in lines if not line.startswith(_GONE)] + [b"%d" % wire.transport.is_closed]

    return run(exchange())


def shown(lines: list[bytes]) -> list[bytes]:
    """What does not depend on the request's id."""
    return [line for line in lines if b"request-id" not in line]


@pytest.fixture
def path(lake: Lake) -> str:
    assert lake.create_table("orders").status == 200
    return lake.table("orders")


@pytest.mark.parametrize("name", ODD)
def test_both_ways_read_alike(path: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ODD[name].replace("{smuggled}", str(len(SMUGGLED.format(path=path)))).format(path=path)
    sent = text.encode("latin-1")
    warm = Wire.opened(authorization="Bearer engine")
    for _ in range(3):
        assert warm.ask("GET", path).status == 200
    short = [heard(warm, sent)]
    for one_by_one in (False, True):
        again = Wire.opened()
        short.append(heard(again, sent, one_by_one=one_by_one))
    monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    monkeypatch.setattr(asgi.application, "lane", None)
    ordinary = heard(Wire.opened(), sent)
    for found in short:
        assert sorted(shown(found)) == sorted(shown(ordinary))
    # a request whose body cannot be delimited is cut off when that is found, without an answer
    assert ordinary[0].startswith(b"HTTP/1.1 ") or ordinary == [b"", b"1"]


def test_a_request_without_a_host_is_refused(path: str) -> None:
    """RFC 9112, section 3.2."""
    wire = Wire.opened()
    assert wire.exchange(ODD["no host"].format(path=path).encode()).status == 400


def test_only_whole_requests_of_reads_are_recognised(path: str) -> None:
    recognised = {
        name
        for name, text in ODD.items()
        if key_of(text.replace("{smuggled}", "0").format(path=path).encode("latin-1"), client="", scheme="http")
    }
    assert not recognised & {"a commit, then a read", "a request in a body", "trailers", "lines before"}
