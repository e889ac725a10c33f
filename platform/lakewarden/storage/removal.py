"""What is found and removed below a location, and how much: what storages, purges and their ledger speak in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Found:
    """A file (or link), or a folder that is empty once all before it is gone; `path` is relative to what stays.

    `version` differs if it has been replaced meanwhile; `size` is in bytes, 0 of a folder.
    """

    path: str
    size: int
    version: str
    is_folder: bool = False


@dataclass(slots=True)
class Removed:
    """What became of things that were found; those in neither list are not what was found, and still there.

    `error` is the first failure of the store (a StorageError), which ended the removal early. If it `is_unclear`, more
    may be gone than is listed here, because an answer of the store was lost.
    """

    gone: list[Found] = field(default_factory=list)
    missing: list[Found] = field(default_factory=list)
    error: Exception | None = None
    is_unclear: bool = False

    @classmethod
    def joined(cls, parts: Iterable["Removed"]) -> "Removed":
        whole = cls()
        for part in parts:
            whole.gone += part.gone
            whole.missing += part.missing
            whole.error = whole.error or part.error
            whole.is_unclear = whole.is_unclear or part.is_unclear
        return whole


@dataclass(frozen=True, slots=True)
class Tally:
    files: int = 0
    bytes: int = 0
    folders: int = 0

    @classmethod
    def of(cls, found: Sequence[Found]) -> "Tally":
        folders = sum(each.is_folder for each in found)
        return cls(len(found) - folders, sum(each.size for each in found), folders)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.files + other.files, self.bytes + other.bytes, self.folders + other.folders)
