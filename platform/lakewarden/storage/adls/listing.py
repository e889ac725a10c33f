"""Lists and removes blobs of ADLS: it knows folders, where the account has a hierarchical namespace."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import ClassVar, Final
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from lakewarden.storage.adls.sas import VERSION
from lakewarden.storage.object_faults import Fault, StoreFailed
from lakewarden.storage.object_listing import Entry, NotRemoved, Pages
from lakewarden.storage.object_requests import Answer, ObjectRequests
from lakewarden.storage.plain_xml import NotPlain, ensure_plain

HEADERS: Final = {"x-ms-version": VERSION}

_AT_ONCE: Final = 8
_GONE, _NOT_MET = 404, 412


def fault_of(answer: Answer) -> Fault:
    return Fault(answer.status, answer.headers.get("x-ms-error-code"))


@dataclass(frozen=True, slots=True)
class Folder:
    key: str
    version: str


class AdlsListing:
    """The current blobs of a filesystem; `requests` go to it."""

    KEEPS_VERSIONS: ClassVar = False

    def __init__(self, requests: ObjectRequests) -> None:
        self._requests = requests

    def below(self, prefix: str, *, within_s: float | None = None) -> Iterator[Entry]:
        return (each for each in self._found(prefix, within_s=within_s) if isinstance(each, Entry))

    def inside(self, prefix: str) -> Iterator[str]:
        for page in self._pages(prefix, delimiter="/"):
            yield from (_name(each) for each in page.findall("Blobs/BlobPrefix"))

    def everything(self, prefix: str) -> Iterator[Entry]:
        return self.below(prefix)

    def between(self, first: str, last: str) -> Iterator[Entry]:
        """Right for any range, and slow for a narrow one in a wide folder: the service lists by prefixes only."""
        prefix = os.path.commonprefix([first, last])  # noqa: RUF071 keys are texts
        return (each for each in self.below(prefix) if first <= each.key <= last)

    def folders(self, place: str) -> Iterator[Folder]:
        """The folder `place` and those below it, inner ones first; none in accounts without folders."""
        around: list[Folder] = []
        for each in self._found(f"{place}/"):
            if isinstance(each, Folder):
                while around and not each.key.startswith(f"{around[-1].key}/"):
                    yield around.pop()
                around.append(each)
        yield from reversed(around)
        answer = self._head(place)
        if answer.status != _GONE and answer.headers.get("x-ms-meta-hdi_isfolder") == "true":
            yield Folder(place, answer.headers.get("ETag", ""))

    def remove(self, entries: Sequence[Entry]) -> list[NotRemoved]:
        with ThreadPoolExecutor(min(_AT_ONCE, max(1, len(entries))), thread_name_prefix="purge-adls") as threads:
            outcomes = threads.map(lambda each: (each, self.remove_one(each.key, each.version)), entries)
            return [NotRemoved(each.key, code) for each, code in outcomes if code not in {None, ""}]

    def remove_one(self, key: str, version: str) -> str | None:
        """Remove what is still as it was found. None: removed; "": it was gone; otherwise the code of the refusal.

        StoreFailed if a later try may succeed.
        """
        headers = {**HEADERS, "If-Match": version, "x-ms-delete-snapshots": "include"}
        try:
            answer = self._requests.send("DELETE", key, headers=headers, expected=(_GONE, _NOT_MET))
        except StoreFailed as error:
            if error.fault.is_passing:
                raise
            return error.fault.code or str(error.fault.status)
        # the condition is not met by a missing blob either
        if answer.status == _GONE or (answer.status == _NOT_MET and self._head(key).status == _GONE):
            return ""
        return fault_of(answer).code or str(answer.status) if answer.status == _NOT_MET else None

    def _head(self, key: str) -> Answer:
        return self._requests.send("HEAD", key, headers=HEADERS, expected=(_GONE,))

    def _found(self, prefix: str, *, within_s: float | None = None) -> Iterator[Entry | Folder]:
        for page in self._pages(prefix, within_s=within_s):
            yield from map(_entry, page.findall("Blobs/Blob"))

    def _pages(self, prefix: str, *, within_s: float | None = None, **more: str) -> Iterator[ET.Element]:
        marker, bounds = "", Pages(within_s)
        while True:
            query = {"restype": "container", "comp": "list", "maxresults": "1000", "prefix": prefix, **more}
            answer = self._requests.send("GET", query=query | ({"marker": marker} if marker else {}), headers=HEADERS)
            try:
                ensure_plain(answer.data)
                page = ET.fromstring(answer.data)  # noqa: S314 it declares nothing that expands
            except (ET.ParseError, NotPlain):
                raise StoreFailed(Fault(answer.status, "notXml")) from None
            yield page
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return
            bounds.turn(is_empty=page.find("Blobs/*") is None)


def _name(element: ET.Element) -> str:
    name = element.find("Name")
    key = (name.text or "") if name is not None else ""
    return unquote(key) if name is not None and name.get("Encoded") == "true" else key


def _entry(blob: ET.Element) -> Entry | Folder:
    key = _name(blob)
    version = _quoted(blob.findtext("Properties/Etag", ""))
    if blob.findtext("Properties/ResourceType") == "directory":
        return Folder(key, version)
    size, changed_at = blob.findtext("Properties/Content-Length", "0"), blob.findtext("Properties/Last-Modified", "")
    return Entry(key, int(size), version, parsedate_to_datetime(changed_at))


def _quoted(etag: str) -> str:
    """As in a header: lists omit the quotes."""
    return etag if etag.startswith('"') else f'"{etag}"'
