"""All scenarios, in the order in which they run and are reported."""

from fnmatch import fnmatchcase

from benchmarks.failures import BenchmarkError
from benchmarks.load.requests import IDENTITY
from benchmarks.metadata import LARGE, MEDIUM, SMALL
from benchmarks.scenarios.changes import changes
from benchmarks.scenarios.commits import PropertyCommits, SnapshotCommits
from benchmarks.scenarios.creations import CreateNamespace, CreateTable
from benchmarks.scenarios.files import LoadForFiles, Sign
from benchmarks.scenarios.interface import Scenario
from benchmarks.scenarios.reads import Config, Head, ListTables, Load, NotModified


def scenarios() -> list[Scenario]:
    """New ones, not prepared yet."""
    return [
        Config(),
        Load("load-small", "loadTable, 4 KB of metadata, as gzip", SMALL),
        Load("load-small-identity", "the same, client without gzip", SMALL, IDENTITY),
        Load("load-medium", "loadTable, 66 KB (100 columns, 55 snapshots), as gzip", MEDIUM),
        Load("load-medium-identity", "the same, client without gzip", MEDIUM, IDENTITY),
        Load("load-large", "loadTable, 1.8 MB (200 columns, 1,000 snapshots, 42 schemas), as gzip", LARGE),
        Load("load-large-identity", "the same, client without gzip", LARGE, IDENTITY),
        NotModified(),
        Head(),
        ListTables("list-1000", "all names of a namespace of 1,000 tables", is_paged=False),
        ListTables("list-page", "a page of 100 from the middle of it", is_paged=True),
        CreateNamespace(),
        CreateTable(),
        PropertyCommits(
            "commit-apart", "set a property, each client on a table of its own; ledger", is_contended=False
        ),
        PropertyCommits("commit-contended", "set a property, all clients on one table; ledger", is_contended=True),
        SnapshotCommits(),
        *changes(),
        LoadForFiles("load-keys", "S3: loadTable with credentials for its files", "vended-credentials", with_keys=True),
        LoadForFiles("load-no-keys", "S3: the same without credentials", "client-managed", with_keys=False),
        Sign("sign-read", "S3: a signature for a GET, by the table's id", "GET", by="id"),
        Sign("sign-write", "S3: for a PUT", "PUT", by="id"),
        Sign("sign-location", "S3: for a GET, for the table that the file lies in", "GET", by="location"),
    ]


def chosen(patterns: str) -> list[Scenario]:
    """Those that match one of the comma-separated names or patterns (`load-*`)."""
    everything = scenarios()
    wanted = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()]
    for pattern in wanted:
        if not any(fnmatchcase(each.name, pattern) for each in everything):
            names = ", ".join(each.name for each in everything)
            raise BenchmarkError(f"There is no scenario {pattern!r}; there are {names}")
    return [each for each in everything if any(fnmatchcase(each.name, pattern) for pattern in wanted)]
