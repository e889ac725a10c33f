"""Documents that this process has read recently, for reads that know from the row which version they need."""

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from cachetools import LRUCache

from catalog.documents import Document
from lakewarden import board

CAPACITY_BYTES = 64 * 1024 * 1024


class Kept(NamedTuple):
    """A document, and what else an answer needs.

    `is_missing` says whether the metadata file is missing (None if only a request to the storage can tell), and may
    hang: never call it on the event loop. `suffix` follows the document (None if it depends on the caller).
    """

    version: int
    document: Document
    is_missing: Callable[[], bool] | None
    suffix: bytes | None


class DocumentCache:
    """Bounded by the bytes of its documents; shared by all threads of a process."""

    def __init__(self, capacity: int = CAPACITY_BYTES) -> None:
        self._kept: LRUCache[UUID, Kept] = LRUCache(capacity, getsizeof=lambda kept: len(kept.document.content))
        self._largest = capacity // 4
        self._lock = Lock()

    def find(self, identifier: UUID, version: int) -> Kept | None:
        """The cached document of exactly this version."""
        with self._lock:
            kept = self._kept.get(identifier)
        return None if kept is None or kept[0] != version else kept

    def keep(self, identifier: UUID, kept: Kept) -> None:
        """Only for committed versions: the number of one that was rolled back will be used again for another state."""
        if len(kept.document.content) <= self._largest:
            with self._lock:
                self._kept[identifier] = kept


DOCUMENT_CACHE = DocumentCache(CAPACITY_BYTES // board.current().processes)
