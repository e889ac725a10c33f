"""Restores a table to the state in an earlier file of its own metadata log: a look at it, then one commit."""

from dataclasses import dataclass, replace

from catalog.iceberg import tables as engine
from catalog.iceberg.restoration import WayBack
from catalog.models import Tabular
from catalog.services import metadata_files, pointer, tables
from catalog.services.contracts import effective, gate
from catalog.services.contracts.combined import Combined
from catalog.services.pointer import NewMetadata, Stored
from catalog.services.tables import CommitTable
from lakewarden.authz.interface import Granted
from lakewarden.errors import CommitFailed, NotFound, ValidationFailed

_MAIN = "main"


@dataclass(frozen=True, slots=True)
class Look:
    """What restoring would do: the metadata as it is and as it would be, None if nothing changes.

    `expired`: branches and tags that the file has and whose snapshots are gone; `removed`: metadata files that the
    table's properties then say to remove; `violations`: what data contracts say against it.
    """

    now: Stored
    after: bytes | None
    expired: dict[str, int]
    removed: tuple[str, ...]
    violations: list[str]


def look(granted: Granted[Tabular], file: str) -> Look:
    """Raises as `restore`, but for a race; changes nothing."""
    now = pointer.load(granted)
    commit, back = _planned(granted, now, file)
    new, rules = commit.compute(now, None), effective.of_tabular(granted.target)
    violations = [] if new is None else list(map(str, gate.judged(commit.propose(now, new), rules)))
    removed = () if new is None else tuple(pointer.own_files(new.obsolete, now.tabular))
    return Look(now, None if new is None else new.encoded, back.expired, removed, violations)


def restore(granted: Granted[Tabular], file: str, *, seen: str) -> Stored:
    """Commit the state in `file`; `seen` is the metadata file that the caller looked at.

    Raises NotFound for a file that is not in the table's metadata log, ValidationFailed for one that is gone, is of
    another table or whose snapshot has expired, CommitFailed when `seen` is not the newest any more, and as
    `tables.commit`.
    """
    now = pointer.newest(granted.target)
    commit, back = _planned(granted, now, file)
    if _MAIN in back.expired:
        raise ValidationFailed(f"Cannot restore: the snapshot {back.expired[_MAIN]} of that time has expired")

    def compute(base: Stored, rules: Combined | None) -> NewMetadata | None:
        if base.tabular.metadata_location != seen:
            raise CommitFailed(f"{granted.target} has changed: its metadata file is not {seen} any more")
        return commit.compute(base, rules)

    return pointer.commit(replace(commit, compute=compute))


def earlier_files(stored: Stored) -> list[str]:
    """The files to which the table can be restored, newest first: a log may also name files of other tables."""
    opened = stored.opened or engine.TableMetadata.decode(stored.metadata)
    return pointer.own_files(opened.metadata_files, stored.tabular)[::-1]


def _planned(granted: Granted[Tabular], now: Stored, file: str) -> tuple[pointer.Commit, WayBack]:
    if file not in earlier_files(now):
        raise NotFound(f"The metadata log of {granted.target} has no such file: {file[:1000]}")
    before = engine.TableMetadata.decode(now.metadata)
    then = engine.TableMetadata.read_file(metadata_files.read(granted.target.namespace.warehouse, file))
    if then.uuid != before.uuid:
        raise ValidationFailed(f"The metadata file is of another table, {then.uuid}: {file}")
    back = engine.way_back(before, then)
    return tables.prepared(granted, CommitTable(requirements=[], updates=back.updates)), back
