"""Lists and removes objects of Google Cloud Storage by its JSON API."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from lakewarden.storage.object_faults import Fault, StoreFailed
from lakewarden.storage.object_listing import Entry, NotRemoved
from lakewarden.storage.object_requests import ObjectRequests

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_AT_ONCE: Final = 8
"""Removals of one page: the API has no request that removes several objects."""
_FIELDS: Final = "nextPageToken,items(name,size,generation,updated)"
_GONE: Final = 404
_REPLACED: Final = 412


def code_of(answer: "BaseHTTPResponse") -> str | None:
    try:
        return str(json.loads(answer.data)["error"]["errors"][0]["reason"])[:80]
    except (ValueError, LookupError, TypeError):
        return None


class GcsListing:
    """The current objects of a bucket; `requests` go to its objects."""

    KEEPS_VERSIONS: ClassVar = False

    def __init__(self, requests: ObjectRequests) -> None:
        self._requests = requests

    def below(self, prefix: str) -> Iterator[Entry]:
        return self._objects({"prefix": prefix})

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

    def _objects(self, query: dict[str, str]) -> Iterator[Entry]:
        token = ""
        while True:
            page = self._page(query | ({"pageToken": token} if token else {}))
            for each in page.get("items", ()):
                yield Entry(
                    each["name"], int(each["size"]), str(each["generation"]), datetime.fromisoformat(each["updated"])
                )
            token = page.get("nextPageToken", "")
            if not token:
                return

    def _page(self, query: dict[str, str]) -> dict[str, Any]:
        answer = self._requests.send("GET", query=query | {"maxResults": "1000", "fields": _FIELDS})
        try:
            return dict(json.loads(answer.data))
        except ValueError:
            raise StoreFailed(Fault(answer.status, "notJson")) from None
