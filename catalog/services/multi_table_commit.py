"""Commits to several tables, all of them or none."""

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.models import Namespace, Tabular
from catalog.services import metadata_files, pointer, tables
from catalog.services.tables import CommitTable
from lakewarden.authz.interface import Granted


@dataclass(frozen=True, slots=True)
class TableCommit:
    granted: Granted[Tabular]
    request: CommitTable


@dataclass(frozen=True, slots=True)
class TableCreation:
    """The completion of a staged creation, as a part of the transaction."""

    namespace: Granted[Namespace]
    name: str
    request: CommitTable


def commit(commits: Sequence[TableCommit], creations: Sequence[TableCreation]) -> None:
    """Apply everything in one database transaction.

    Raises CommitFailed when any requirement does not hold, AlreadyExists when a table to be created exists. Files are
    written before anything is locked; those of all tables are discarded when the whole has certainly failed.
    """
    prepared = [tables.prepared(one.granted, one.request) for one in commits]
    if not creations:
        pointer.commit_all(prepared)
        return
    written: list[str] = []
    with metadata_files.discarding(creations[0].namespace.target.warehouse, written):
        ready = []
        for one in creations:
            ready.append(tables.written_by_commit(one.namespace, one.name, one.request))
            written.append(ready[-1].new.file)
        # exclusive claims come first: two transactions that both share the lock of locations could never both upgrade
        # it
        ready.sort(key=lambda each: each.claim.is_shared)

        def create() -> None:
            for each in ready:
                tables.add_by_commit(each)

        pointer.commit_all(prepared, also=create)
