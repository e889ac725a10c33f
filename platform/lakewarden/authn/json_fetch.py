"""Fetches JSON over HTTP with limits on time and size; used by all of authn."""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec
import urllib3

from lakewarden.timed_connections import timed_pools

JsonObject = dict[str, Any]
FetchJson = Callable[[str], JsonObject]
PostJson = Callable[[str, bytes, Mapping[str, str]], JsonObject]

_MAX_BYTES: Final = 1024 * 1024
_TIMEOUT: Final = urllib3.Timeout(total=5.0, connect=2.0, read=3.0)
_RETRIES: Final = urllib3.Retry(total=2, connect=0, read=0, redirect=2, status=0, other=0)
_ANSWERED: Final = (HTTPStatus.OK, HTTPStatus.CREATED)
# the beginning of urllib3's messages, which contains the address of an object
_CONNECTION: Final = re.compile(r"^\W*(?:[\w.]+\.)?HTTPS?Connection.*?\): ")
_SERVES_NOBODY: Final = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


class FetchFailed(Exception):
    """The request failed; the message says why, for the log. `status` is the HTTP status, if there was an answer."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ServesNobody(FetchFailed):
    """Other requests would fail now, too: the party is not reachable, overloaded, or refuses
    this server's credentials.
    """


class JsonClient:
    """Keeps connections open. Thread-safe. `ca_file` (PEM) replaces the system's certificates."""

    def __init__(self, *, ca_file: Path | None = None) -> None:
        ca_certs = None if ca_file is None else str(ca_file)
        self._pool = timed_pools(num_pools=8, maxsize=8, ca_certs=ca_certs)

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> JsonObject:
        """GET one JSON object of at most 1 MiB; gives up after about five seconds.

        Raises:
            FetchFailed: not reachable, not 200, too large, or not a JSON object.

        """
        return self._call("GET", url, headers=headers or {}, body=None)

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> JsonObject:
        """POST and return the answer, like `get`.

        Does not follow redirects, which could send secrets to another server.
        """
        return self._call("POST", url, headers=headers, body=body)

    def _call(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None) -> JsonObject:
        if not url.startswith(("https://", "http://")):
            raise FetchFailed(f"'{url}' is not an http or https address")
        try:
            with self._pool.request(
                method,
                url,
                body=body,
                headers={"Accept": "application/json, application/jwk-set+json", **headers},
                redirect=body is None,
                timeout=_TIMEOUT,
                retries=_RETRIES,
                preload_content=False,
            ) as response:
                status = response.status
                content = response.read(_MAX_BYTES + 1, decode_content=True)
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise ServesNobody(f"{url} cannot be read: {reason_of(error)}") from error
        if status in _SERVES_NOBODY:
            raise ServesNobody(f"{url} answered with status {status}", status=status)
        if status not in _ANSWERED:
            raise FetchFailed(f"{url} answered with status {status}", status=status)
        if len(content) > _MAX_BYTES:
            raise FetchFailed(f"{url} answered with more than {_MAX_BYTES} bytes")
        return _as_object(url, content)


_client: Final = JsonClient()


def fetch_json(url: str) -> JsonObject:
    """GET a public document; see `JsonClient.get`."""
    return _client.get(url)


def post_json(url: str, body: bytes, headers: Mapping[str, str]) -> JsonObject:
    """POST to a provider; see `JsonClient.post`."""
    return _client.post(url, body, headers)


def reason_of(error: Exception) -> str:
    """The message of the innermost cause, without urllib3's object addresses."""
    cause: object = error
    while isinstance(cause, urllib3.exceptions.MaxRetryError) and cause.reason is not None:
        cause = cause.reason
    return _CONNECTION.sub("", str(cause)) or type(cause).__name__


def _as_object(url: str, content: bytes) -> JsonObject:
    try:
        document = msgspec.json.decode(content)  # stricter than the standard library: no NaN
    except (ValueError, RecursionError) as error:
        raise FetchFailed(f"{url} did not answer with JSON") from error
    if not isinstance(document, dict):
        raise FetchFailed(f"{url} did not answer with a JSON object")
    return document
