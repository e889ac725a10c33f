"""Documents that this process has read lately, for reads that learn from the row which version they need."""

from collections.abc import Callable
from threading import Lock
from uuid import UUID

from cachetools import LRUCache

from catalog.documents import Document
from lakewarden import board

CAPACITY_BYTES = 64 * 1024 * 1024

_Kept = tuple[int, Document, Callable[[], bool]]


class DocumentCache:
    """Bounded by the bytes of its documents; shared by all threads of a process."""

    def __init__(self, capacity: int = CAPACITY_BYTES) -> None:
        self._kept: LRUCache[UUID, _Kept] = LRUCache(capacity, getsizeof=lambda kept: len(kept[1].content))
        self._largest = capacity // 4
        self._lock = Lock()

    def find(self, identifier: UUID, version: int) -> tuple[Document, Callable[[], bool]] | None:
        """The document of exactly this version, and what says whether its metadata file is gone."""
        with self._lock:
            kept = self._kept.get(identifier)
        return None if kept is None or kept[0] != version else kept[1:]

    def keep(self, identifier: UUID, version: int, document: Document, is_missing: Callable[[], bool]) -> None:
        """Only what has been committed: a version that was taken back would be given again to something else.

        `is_missing` says whether the metadata file is known to be gone. It may hang: never call it on the event loop.
        """
        if len(document.content) <= self._largest:
            with self._lock:
                self._kept[identifier] = (version, document, is_missing)


DOCUMENT_CACHE = DocumentCache(CAPACITY_BYTES // board.current().processes)
