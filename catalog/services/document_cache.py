"""Documents that this process has read lately, for reads that learn from the row which version they need."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from uuid import UUID

from catalog.documents import Document
from lakewarden import board

CAPACITY_BYTES = 64 * 1024 * 1024


class DocumentCache:
    """Bounded by the bytes of its documents; shared by all threads of a process."""

    def __init__(self, capacity: int = CAPACITY_BYTES) -> None:
        self._capacity = capacity
        self._size = 0
        self._kept: OrderedDict[UUID, tuple[int, Document, Callable[[], bool]]] = OrderedDict()
        self._lock = Lock()

    def find(self, identifier: UUID, version: int) -> tuple[Document, Callable[[], bool]] | None:
        """The document of exactly this version, and what says whether its metadata file is gone."""
        with self._lock:
            kept = self._kept.get(identifier)
            if kept is None or kept[0] != version:
                return None
            self._kept.move_to_end(identifier)
        return kept[1:]

    def keep(self, identifier: UUID, version: int, document: Document, is_missing: Callable[[], bool]) -> None:
        """Only what has been committed: a version that was taken back would be given again to something else.

        `is_missing` says whether the metadata file is known to be gone. It may hang: never call it on the event loop.
        """
        size = len(document.content)
        if size > self._capacity // 4:
            return
        with self._lock:
            before = self._kept.pop(identifier, None)
            if before is not None:
                self._size -= len(before[1].content)
            self._kept[identifier] = (version, document, is_missing)
            self._size += size
            while self._size > self._capacity:
                _, (_, dropped, _) = self._kept.popitem(last=False)
                self._size -= len(dropped.content)


DOCUMENT_CACHE = DocumentCache(CAPACITY_BYTES // board.current().processes)
