"""Limits what a store's answer may cost: AWS's library reads all that comes, as long as a little comes at a time."""

import time
from collections.abc import Iterator
from typing import Any, Final

import urllib3
from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
    AWSResponse,
)
from botocore.exceptions import BotoCoreError, ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from lakewarden.storage.plain_xml import NotPlain, ensure_plain
from lakewarden.timed_connections import TimedResponse

LARGEST: Final = 16 * 2**20
"""In bytes: twice a page of 1000 keys of the greatest length."""
_CHUNK: Final = 64 * 1024

FAILURES: Final = (BotoCoreError, ResponseParserError)
"""What calls raise where the store gave no proper answer. The text of the second is the answer, with its secrets."""


class AnswerTooLarge(BotoCoreError):
    fmt = "The answer has more than {most} bytes"


class AnswerNotPlain(BotoCoreError):
    fmt = "The answer would be much larger in memory than it is"


def bounded(client: Any, *, most: int = LARGEST) -> Any:  # noqa: ANN401 made by botocore
    """The client, whose answers must have arrived within the time-out of reads, and with at most so many bytes."""
    endpoint = client._endpoint  # noqa: SLF001 there is no other way to its HTTP session
    sessions = endpoint.http_session
    for pools in (sessions._pool_classes_by_scheme, sessions._manager.pool_classes_by_scheme):  # noqa: SLF001 as above
        pools.update(_POOLS)
    endpoint.http_session = _Session(endpoint.http_session, seconds=client.meta.config.read_timeout, most=most)
    return client


class _Connection(AWSHTTPConnection):
    response_class = TimedResponse  # type: ignore[assignment]


class _SecureConnection(AWSHTTPSConnection):
    response_class = TimedResponse  # type: ignore[assignment]


class _WithoutRedirects:
    def urlopen(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 of urllib3
        inherited: Any = super()
        return inherited.urlopen(*args, **options, redirect=False)


class _Pool(_WithoutRedirects, AWSHTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(_WithoutRedirects, AWSHTTPSConnectionPool):
    ConnectionCls = _SecureConnection


_POOLS: Final = {"http": _Pool, "https": _SecurePool}


class _Session:
    def __init__(self, inner: Any, *, seconds: float, most: int) -> None:  # noqa: ANN401 of botocore
        self._inner, self._seconds, self._most = inner, seconds, most

    def send(self, request: Any) -> AWSResponse:  # noqa: ANN401 of botocore
        until = time.monotonic() + self._seconds
        request.stream_output = True  # so that it is not read yet
        answer = self._inner.send(request)
        content = b"".join(self._chunks(answer.raw, request.url, until))
        try:
            ensure_plain(content)
        except NotPlain:
            raise AnswerNotPlain from None
        return AWSResponse(answer.url, answer.status_code, answer.headers, _Read(content))

    def close(self) -> None:
        self._inner.close()

    def _chunks(self, raw: urllib3.HTTPResponse, url: str, until: float) -> Iterator[bytes]:
        size = 0
        try:
            while chunk := raw.read1(_CHUNK):
                size += len(chunk)
                if size > self._most:
                    raise AnswerTooLarge(most=self._most)
                if time.monotonic() > until:
                    raise ReadTimeoutError(endpoint_url=url)
                yield chunk
        except BotoCoreError:
            raw.close()  # what is left of the answer must not be read by the next request
            raise
        except urllib3.exceptions.ReadTimeoutError:
            raise ReadTimeoutError(endpoint_url=url) from None
        except (urllib3.exceptions.HTTPError, OSError):
            raise ConnectionClosedError(endpoint_url=url) from None


class _Read:
    """A body that has been read."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self._content
