"""A storage over an object store: files are whole objects, and there are no folders.

Single objects are reached by plain requests, and those below a place through the `Listing` of each cloud.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from lakewarden.config import StorageConfig
from lakewarden.storage import object_removal
from lakewarden.storage.client_access import AccessRequest, ClientAccess
from lakewarden.storage.interface import FileTaken, OutOfReach, StorageError, StorageUnavailable
from lakewarden.storage.object_faults import Advice, StoreFailed, translated
from lakewarden.storage.object_listing import Listing
from lakewarden.storage.object_requests import AnswerTooLarge, ObjectRequests, paused
from lakewarden.storage.places import is_at_or_in, is_in
from lakewarden.storage.removal import Found, Removed

_CONFLICT: Final = "ConditionalRequestConflict"
"""Two writers of one key at once: S3 asks both to try again."""
_TAKEN: Final = "BlobAlreadyExists"
"""What Azure says where others say that the condition is not met."""
_GONE: Final = 404
_ERRORS: Final = (StoreFailed, OSError, ValueError, LookupError, TypeError)
"""Not only of stores that fail: others are those of answers that lack something."""


class ObjectStorage:
    """What lies below `base`, a location in the normal form of the profile.

    `requests` go to single objects. `prepare` runs before each call, and raises StorageError when there are no
    credentials.
    """

    def __init__(
        self,
        requests: ObjectRequests,
        listing: Listing,
        *,
        base: str,
        normal: Callable[[str], str],
        advice: Advice,
        settings: StorageConfig,
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        self._requests, self._listing = requests, listing
        self._base, self._normal, self._advice, self._prepare = base, normal, advice, prepare
        self._settings = settings

    def write_new(self, location: str, content: bytes) -> None:
        """As in the interface. After an outcome that is not known the file is read back: it may be ours."""
        key, unknown, started = self._key(location), False, time.monotonic()
        for left in reversed(range(self._settings.retries + 1)):
            try:
                return self._put(key, content, location)
            except FileTaken:
                if unknown and self._holds(location, content):
                    return None
                raise
            except StorageUnavailable:
                unknown = True
                if left and paused(self._settings, tried=self._settings.retries - left, started=started):
                    continue
                if self._has_time(started) and self._holds(location, content):
                    return None
                raise
        return None

    def read(self, location: str, *, limit: int) -> bytes:
        key = self._key(location)
        with self._translating("reading", location):
            try:
                return self._get(key, limit)
            except AnswerTooLarge:
                pass
        raise StorageError(f"The file {location} is larger than {limit} bytes")

    def delete(self, location: str) -> None:
        key = self._key(location)
        with self._translating("deleting", location):
            try:
                self._delete(key)
            except StoreFailed as error:
                # some stores say so of an object, and all of them of a bucket
                if error.fault.status != _GONE or self._advice(error.fault):
                    raise

    def is_known_missing(self, location: str) -> bool:  # noqa: ARG002 only a request would tell
        return False

    def is_empty(self, location: str, *, since: datetime | None = None) -> bool:
        prefix = f"{self._key(location)}/".removeprefix("/")
        with self._translating("listing", location):
            listed = self._listing.below(prefix, within_s=self._settings.look_timeout_s)
            files = (each for each in listed if not each.is_folder)
            return not any(since is None or each.changed_at < since for each in files)

    def survey(self, location: str, *, within: str) -> Iterator[Found]:
        place, kept = self._place(location), self._place(within)
        if not is_in(place, kept):
            raise StorageError(f"{location} is not below {within}: it is never deleted")
        start = len(_prefix(kept))
        with self._translating("listing", location):
            for each in self._listing.everything(_prefix(place)):
                yield Found(each.key[start:], each.size, each.version)

    def folders(self, location: str) -> Iterator[str]:
        prefix = f"{self._key(location)}/".removeprefix("/")
        with self._translating("listing", location):
            for each in self._listing.inside(prefix):
                if name := each.removeprefix(prefix).removesuffix("/"):
                    yield name

    def remove(self, found: Sequence[Found], *, within: str, at_once: int) -> Removed:
        prefix = _prefix(self._place(within))

        def clear(page: Sequence[Found]) -> Removed:
            outcome = Removed()
            try:
                with self._translating("deleting", within):
                    object_removal.remove_page(self._listing, page, prefix, outcome)
            except StorageError as error:
                outcome.error, outcome.is_unclear = error, isinstance(error, StorageUnavailable)
            return outcome

        return object_removal.in_pages(found, clear, at_once=at_once)

    def ensure_there(self) -> None:
        """As in the interface; a bucket that answers is the right one, and may be empty."""
        with self._translating("listing", self._base):
            next(iter(self._listing.below(_prefix(self._base), within_s=self._settings.look_timeout_s)), None)

    def client_access(self, request: AccessRequest) -> ClientAccess:
        self._place(request.location)
        return ClientAccess()

    def nearest_folder(self, location: str) -> str:
        return self._place(location)

    def make_folder(self, location: str) -> None:
        self._place(location)  # there are no folders

    def remove_empty(self, location: str, *, inside: str) -> None:
        """There are no folders."""

    def _put(self, key: str, content: bytes, location: str) -> None:
        with self._translating("writing", location):
            try:
                self._send_new(key, content)
            except StoreFailed as error:
                if error.fault.code == _CONFLICT:
                    raise StorageUnavailable(f"Another writer is busy with {location}: try again") from None
                if error.fault.code == _TAKEN:
                    raise FileTaken(f"A file already exists at {location}") from None
                raise

    def _send_new(self, key: str, content: bytes) -> None:
        """One try: the next one must know what this one may have done."""
        raise NotImplementedError

    def _get(self, key: str, most: int) -> bytes:
        return self._requests.send("GET", key, most=most).data

    def _delete(self, key: str) -> None:
        self._requests.send("DELETE", key)

    def _holds(self, location: str, content: bytes) -> bool:
        try:
            return self.read(location, limit=len(content)) == content
        except StorageError:
            return False

    def _has_time(self, started: float) -> bool:
        return time.monotonic() - started < self._settings.retry_within_s

    @contextmanager
    def _translating(self, doing: str, location: str) -> Iterator[None]:
        self._prepare()
        try:
            yield
        except _ERRORS as error:
            # without a cause: the texts of stores and libraries may hold keys
            raise translated(error, doing=doing, location=location, advice=self._advice) from None

    def _place(self, location: str) -> str:
        place = self._normal(location)
        if not is_at_or_in(place, self._base):
            raise OutOfReach(f"{location} is outside of the warehouse's location {self._base}")
        return place

    def _key(self, location: str) -> str:
        return _prefix(self._place(location)).rstrip("/")


def _prefix(place: str) -> str:
    """Of the keys below a place: empty for a whole bucket."""
    _, _, key = place.partition("://")[2].partition("/")
    return f"{key}/" if key else ""
