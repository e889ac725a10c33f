"""Lists and removes objects of S3 by AWS's library: it names every key exactly, and knows versions and uploads."""

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import Any, Final

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from lakewarden.storage.object_faults import Fault, StoreFailed, plain_code, region_in
from lakewarden.storage.object_listing import Entry, NotRemoved, Pages
from lakewarden.storage.s3.bounded_answers import FAILURES

_ENTRIES: Final = ("Contents", "CommonPrefixes", "Versions", "DeleteMarkers", "Uploads")
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
"""What XML cannot say: such keys are removed one by one, in the path of a request."""


class S3Listing:
    """The current objects of a bucket. `connect` makes a client of S3 for all threads, once it is needed."""

    def __init__(self, connect: Callable[[], Any], bucket: str) -> None:
        self._connect, self._bucket = connect, bucket

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 made by botocore
        return self._connect()

    def below(self, prefix: str, *, within_s: float | None = None) -> Iterator[Entry]:
        return self._objects(prefix, within_s=within_s)

    def inside(self, prefix: str) -> Iterator[str]:
        for page in self._pages("list_objects_v2", Prefix=prefix, Delimiter="/"):
            yield from (each["Prefix"] for each in page.get("CommonPrefixes", []))

    def everything(self, prefix: str) -> Iterator[Entry]:
        return self.below(prefix)

    def between(self, first: str, last: str) -> Iterator[Entry]:
        marker = before(first)
        return within(self._objects(common(marker, last), after=marker), first, last)

    def remove(self, entries: Sequence[Entry]) -> list[NotRemoved]:
        together = [each for each in entries if not _UNSPEAKABLE.search(each.key)]
        failed = self._remove_together(together) if together else []
        for each in entries:
            if _UNSPEAKABLE.search(each.key):
                with translating():
                    self._client.delete_object(Bucket=self._bucket, **self._named(each))
        return failed

    def _named(self, entry: Entry) -> dict[str, str]:
        return {"Key": entry.key}

    def _remove_together(self, entries: Sequence[Entry]) -> list[NotRemoved]:
        request = {"Objects": [self._named(each) for each in entries], "Quiet": True}
        with translating():
            answer = self._client.delete_objects(Bucket=self._bucket, Delete=request)
        errors = [NotRemoved(each["Key"], plain_code(each.get("Code")) or "") for each in answer.get("Errors", [])]
        return [each for each in errors if each.code != "NoSuchKey"]

    def _objects(self, prefix: str, *, after: str = "", within_s: float | None = None) -> Iterator[Entry]:
        asked: dict[str, Any] = {"StartAfter": after} if after else {}
        for page in self._pages("list_objects_v2", within_s=within_s, Prefix=prefix, **asked):
            for each in page.get("Contents", []):
                changed_at = each["LastModified"]
                yield Entry(each["Key"], each["Size"], version_of(each.get("ETag", ""), changed_at), changed_at)

    def _pages(self, name: str, *, within_s: float | None = None, **arguments: str) -> Iterator[dict[str, Any]]:
        bounds = Pages(within_s)
        pages = iter(self._client.get_paginator(name).paginate(Bucket=self._bucket, **arguments))
        while True:
            with translating():
                page = next(pages, None)
            if page is None:
                return
            yield page
            bounds.turn(is_empty=not any(page.get(each) for each in _ENTRIES))


@contextmanager
def translating() -> Iterator[None]:
    """Raises StoreFailed instead of what AWS's library raises."""
    try:
        yield
    except ClientError as error:
        answer = error.response
        detail: dict[str, Any] = dict(answer.get("Error", {}))
        region = region_in(str(detail.get("Message")))
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        raise StoreFailed(Fault(status, detail.get("Code"), region)) from None
    except FAILURES as error:
        raise StoreFailed(Fault(is_timeout=isinstance(error, ConnectTimeoutError | ReadTimeoutError))) from None


def within(entries: Iterator[Entry], first: str, last: str) -> Iterator[Entry]:
    """Of entries in order, those from `first` to `last`; the others after them are not asked for."""
    after = takewhile(lambda each: each.key.encode() <= last.encode(), entries)
    return (each for each in after if each.key.encode() >= first.encode())


def without_redirects(client: Any) -> None:  # noqa: ANN401 made by botocore
    """The region is the profile's: to look for another one never ends at a store that redirects every request."""
    client.meta.events.register("before-call.s3", _mark_redirected)


def _mark_redirected(params: dict[str, Any], **_: object) -> None:
    params.setdefault("context", {}).setdefault("s3_redirect", {})["redirected"] = True


def with_md5(client: Any) -> None:  # noqa: ANN401 made by botocore
    """For stores that know no other checksum of a request that removes several objects."""
    client.meta.events.register("before-sign.s3.DeleteObjects", _add_md5)


def _add_md5(request: Any, **_: object) -> None:  # noqa: ANN401 made by botocore
    for name in [
        name for name in request.headers if name.lower().startswith(("x-amz-checksum-", "x-amz-sdk-checksum"))
    ]:
        del request.headers[name]
    digest = hashlib.md5(request.body, usedforsecurity=False).digest()
    request.headers["Content-MD5"] = base64.b64encode(digest).decode()


def version_of(etag: str, changed_at: datetime) -> str:
    """The same content written again is another object."""
    return f"{etag}-{changed_at.isoformat()}"


def common(first: str, last: str) -> str:
    """What both keys start with."""
    length = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None)
    return first[: min(len(first), len(last)) if length is None else length]


def before(key: str) -> str:
    """A key that sorts before `key`, with little between them; lists start after a key, and never with it."""
    last = key[-1]
    return key[:-1] + (chr(ord(last) - 1) + "\U0010ffff" if "!" < last < "\x7f" else "")
