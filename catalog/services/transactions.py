"""Commits to several tables, all of them or none."""

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.models import Namespace, Tabular
from catalog.services import pointer, tables
from catalog.services.tables import CommitTable
from lakewarden.authz.interface import Granted


@dataclass(frozen=True, slots=True)
class TableCommit:
    granted: Granted[Tabular]
    request: CommitTable


@dataclass(frozen=True, slots=True)
class TableCreation:
    """The end of a staged creation, as a part of the transaction."""

    namespace: Granted[Namespace]
    name: str
    request: CommitTable


def commit(commits: Sequence[TableCommit], creations: Sequence[TableCreation]) -> None:
    """Apply everything in one database transaction.

    Raises CommitFailed when any requirement does not hold, AlreadyExists when a table to be created is there.
    """

    def create() -> None:
        for creation in creations:
            tables.create_by_commit(creation.namespace, creation.name, creation.request)

    pointer.commit_all([tables.prepared(one.granted, one.request) for one in commits], also=create)
