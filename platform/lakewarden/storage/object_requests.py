"""Plain requests to an object store: for any key, with conditions, and bounded whatever the store answers."""

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import urllib3

from lakewarden.config import StorageConfig
from lakewarden.storage.object_faults import Fault, StoreFailed
from lakewarden.timed_connections import timed_pools

MOST_BYTES: Final = 16 * 2**20
"""Of one answer, which lists up to 1,000 objects: twice a page of the longest keys."""
_CHUNK: Final = 64 * 1024
_CONNECTIONS: Final = 64
_OK: Final = 200
_SUCCESSES: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names in any case."""
    data: bytes


class Outgoing(NamedTuple):
    """A request before it is authorized; `path` is encoded."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes | None


class AnswerTooLarge(StoreFailed):
    def __init__(self) -> None:
        super().__init__(Fault(_OK, "AnswerTooLarge"))


Proof = tuple[Mapping[str, str], Mapping[str, str]]
"""What proves the identity: query and headers."""


class ObjectRequests:
    """Sends requests below one address; thread-safe.

    `authorize` gives the proof for a request. Each answer must arrive within the time-out, with at
    most so many bytes; redirects are not followed, because what the server may reach, others must not choose.
    """

    def __init__(
        self,
        address: str,
        *,
        authorize: Callable[[Outgoing], Proof],
        fault_of: Callable[[Answer], Fault],
        settings: StorageConfig,
        safe: str = "",
    ) -> None:
        """`fault_of` reads what a store means by an answer. Of a key, the characters in `safe` are not encoded."""
        self._authorize, self._fault_of, self._safe = authorize, fault_of, safe
        parts = urlsplit(address)
        self._origin, self._path = f"{parts.scheme}://{parts.netloc}", parts.path
        self._settings = settings
        self._timeout = urllib3.Timeout(connect=settings.connect_timeout_s, read=settings.request_timeout_s)
        self._pool = timed_pools(address, maxsize=_CONNECTIONS, retries=False)

    def send(
        self,
        method: str,
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        expected: Collection[int] = (),
        most: int = MOST_BYTES,
        retries: int | None = None,
    ) -> Answer:
        """The answer, if it is a success or one of the `expected` statuses; StoreFailed otherwise.

        `key` follows the address after a slash, encoded; `retries` are the settings' unless given. Raises
        AnswerTooLarge beyond `most` bytes.
        """
        path = f"/{quote(key, safe=self._safe)}" if key else ""
        request = Outgoing(method, f"{self._path}{path}", query or {}, headers or {}, body)
        last, started = self._settings.retries if retries is None else retries, time.monotonic()
        for tried in range(last + 1):
            try:
                return self._sent(request, expected, most)
            except StoreFailed as error:
                is_last = tried == last or not error.fault.is_passing
                if is_last or not paused(self._settings, tried=tried, started=started):
                    raise
        raise AssertionError("the last try returns or raises")

    def _sent(self, request: Outgoing, expected: Collection[int], most: int) -> Answer:
        proof, proof_headers = self._authorize(request)
        fields = urlencode({**request.query, **proof}, quote_via=quote)
        try:
            with self._pool.request(
                request.method,
                f"{self._origin}{request.path}{'?' if fields else ''}{fields}",
                headers={**request.headers, **proof_headers},
                body=request.body,
                timeout=self._timeout,
                redirect=False,
                preload_content=False,
                decode_content=False,
            ) as answer:
                whole = Answer(answer.status, answer.headers, _read(answer, most))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise StoreFailed(Fault(is_timeout=_is_timeout(error))) from None
        if whole.status not in _SUCCESSES and whole.status not in expected:
            raise StoreFailed(self._fault_of(whole))
        return whole


def paused(settings: StorageConfig, *, tried: int, started: float) -> bool:
    """Wait before a further try, longer each time, and never as long as others who were refused at the same moment.

    False, at once, if there is no time for one.
    """
    if time.monotonic() - started >= settings.retry_within_s:
        return False
    longest = min(settings.retry_pause_s * 2**tried, settings.request_timeout_s)
    time.sleep(random.uniform(0, longest))  # noqa: S311 not a secret
    return True


def _is_timeout(error: Exception) -> bool:
    is_refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    return isinstance(error, urllib3.exceptions.TimeoutError | TimeoutError) and not is_refused


def _read(answer: urllib3.BaseHTTPResponse, most: int) -> bytes:
    """The body; of a refusal, the beginning is enough."""
    if answer.status not in _SUCCESSES:
        return answer.read(_CHUNK)
    length = answer.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > most:
        raise AnswerTooLarge
    return b"".join(_chunks(answer, most))


def _chunks(answer: urllib3.BaseHTTPResponse, most: int) -> Iterator[bytes]:
    size = 0
    while chunk := answer.read(_CHUNK):
        size += len(chunk)
        if size > most:
            raise AnswerTooLarge
        yield chunk
