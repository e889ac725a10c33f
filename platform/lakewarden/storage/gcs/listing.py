"""Lists and removes objects of Google Cloud Storage by its JSON API."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple

from lakewarden.storage.object_faults import Fault, StoreFailed
from lakewarden.storage.object_listing import Entry, NotRemoved, Pages
from lakewarden.storage.object_requests import Answer, ObjectRequests

_NOT_AS_EXPECTED: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
_AT_ONCE: Final = 8
"""Removals of one page: the API has no request that removes several objects."""
_FIELDS: Final = "nextPageToken,prefixes,items(name,size,generation,updated)"
_GONE: Final = 404
_REPLACED: Final = 412


def fault_of(answer: Answer) -> Fault:
    try:
        code = str(json.loads(answer.data)["error"]["errors"][0]["reason"])[:80]
    except _NOT_AS_EXPECTED:
        code = None
    return Fault(answer.status, code)


class _Page(NamedTuple):
    entries: list[Entry]
    prefixes: list[str]
    token: str
    """Of the next page."""


class GcsListing:
    """The current objects of a bucket; `requests` go to its objects."""

    KEEPS_VERSIONS: ClassVar = False

    def __init__(self, requests: ObjectRequests) -> None:
        self._requests = requests

    def below(self, prefix: str, *, within_s: float | None = None) -> Iterator[Entry]:
        return self._objects({"prefix": prefix}, within_s=within_s)

    def inside(self, prefix: str) -> Iterator[str]:
        return (each for page in self._pages({"prefix": prefix, "delimiter": "/"}) for each in page.prefixes)

    def everything(self, prefix: str) -> Iterator[Entry]:
        return self._objects({"prefix": prefix})

    def between(self, first: str, last: str) -> Iterator[Entry]:
        # the end of a range is not a part of it: U+0000 makes the next key
        return self._objects({"startOffset": first, "endOffset": f"{last}\x00"})

    def remove(self, entries: Sequence[Entry]) -> list[NotRemoved]:
        """Each only as it was found: one that has been replaced meanwhile stays."""
        with ThreadPoolExecutor(min(_AT_ONCE, max(1, len(entries))), thread_name_prefix="purge-gcs") as threads:
            return [each for each in threads.map(self._remove, entries) if each is not None]

    def _remove(self, entry: Entry) -> NotRemoved | None:
        query = {"ifGenerationMatch": entry.version}
        try:
            answer = self._requests.send("DELETE", entry.key, query=query, expected=(_GONE, _REPLACED))
        except StoreFailed as error:
            if error.fault.is_passing:
                raise
            return NotRemoved(entry.key, error.fault.code or str(error.fault.status))
        return NotRemoved(entry.key, "conditionNotMet") if answer.status == _REPLACED else None

    def _objects(self, query: dict[str, str], *, within_s: float | None = None) -> Iterator[Entry]:
        return (each for page in self._pages(query, within_s=within_s) for each in page.entries)

    def _pages(self, query: dict[str, str], *, within_s: float | None = None) -> Iterator[_Page]:
        token, bounds = "", Pages(within_s)
        while True:
            page = self._page(query | ({"pageToken": token} if token else {}))
            yield page
            if not (token := page.token):
                return
            bounds.turn(is_empty=not (page.entries or page.prefixes))

    def _page(self, query: dict[str, str]) -> _Page:
        answer = self._requests.send("GET", query=query | {"maxResults": "1000", "fields": _FIELDS})
        try:
            page = json.loads(answer.data)
            entries = [_entry(each) for each in page.get("items", ())]
            return _Page(entries, [str(each) for each in page.get("prefixes", ())], str(page.get("nextPageToken", "")))
        except _NOT_AS_EXPECTED:
            raise StoreFailed(Fault(answer.status, "notJson")) from None


def _entry(item: dict[str, Any]) -> Entry:
    changed_at = datetime.fromisoformat(item["updated"])
    return Entry(str(item["name"]), int(item["size"]), str(item["generation"]), changed_at)
