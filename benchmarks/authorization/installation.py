"""The installation that is measured: its database and, where OpenFGA decides, a store of its own; set up as one is."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import urllib3

from benchmarks.failures import BenchmarkError
from benchmarks.machine import processes
from lakewarden.errors import Unavailable
from standalone.postgres import EmbeddedPostgres

API_URL = "LAKEWARDEN__OPENFGA__API_URL"
API_TOKEN = "LAKEWARDEN__OPENFGA__API_TOKEN"  # noqa: S105 a variable's name
BACKENDS = ("database", "openfga")
_LOCAL = {"127.0.0.1", "localhost", "::1"}


@dataclass(frozen=True)
class Installation:
    """`backend` is one of BACKENDS; `database` an empty one's URL, None for a Postgres that is started for it."""

    backend: str = "database"
    database: str | None = None

    @contextmanager
    def running(self, directory: Path) -> Iterator[str]:
        """Migrated, with the settings of this process pointing to it; gives the database's URL."""
        if self.backend == "openfga" and not os.environ.get(API_URL):
            raise BenchmarkError(f"--backend openfga needs the address of a running OpenFGA in {API_URL}: see --help")
        if self.database is not None:
            _ensure_empty(self.database)
            with self._migrated(self.database, directory):
                yield self.database
            return
        with (
            EmbeddedPostgres(directory / "postgres", durable=False) as postgres,
            self._migrated(postgres.url, directory),
        ):
            yield postgres.url

    @contextmanager
    def _migrated(self, url: str, directory: Path) -> Iterator[None]:
        os.environ["LAKEWARDEN__DATABASE__URL"] = url
        os.environ["LAKEWARDEN__STORAGE__LOCAL_ROOTS"] = str(directory / "lake")
        os.environ["LAKEWARDEN__SERVER__THREADS"] = "1"  # one connection: its statements are all prepared
        os.environ["LAKEWARDEN__AUTHORIZATION__BACKEND"] = self.backend
        os.environ["LAKEWARDEN__OPENFGA__STORE"] = f"benchmark-{uuid4()}"
        os.environ["DJANGO_SETTINGS_MODULE"] = "lakewarden.settings"
        import django  # noqa: PLC0415 settings are read from the environment that was just set

        django.setup()
        from lakewarden.schema_version import DatabaseNotReady, migrate, migrate_authorization  # noqa: PLC0415 as above

        try:
            migrate(verbosity=0)
            migrate_authorization()
        except DatabaseNotReady as error:
            raise BenchmarkError(str(error)) from error
        try:
            yield
        finally:
            if self.backend == "openfga":
                _remove_store()

    def processes(self, url: str) -> list[int]:
        """The roots of what works beside this process on this machine: Postgres, and OpenFGA if it runs here."""
        found = [_postmaster(url)]
        if self.backend == "openfga":
            address = urlsplit(os.environ[API_URL])
            if address.hostname in _LOCAL and address.port is not None:
                found.append(processes.listener(address.port))
        return [pid for pid in found if pid is not None]


def told() -> tuple[int, float] | None:
    """Bring OpenFGA what was put into the ledger by SQL, as `lakewarden openfga reconcile` does.

    Returns how many tuples it lacked, and the seconds that it took; None where the database decides.
    """
    from lakewarden import config  # noqa: PLC0415 needs settings

    settings = config.current()
    if settings.authorization.backend != "openfga":
        return None
    from lakewarden.authz.openfga.reconcile import reconcile  # noqa: PLC0415 its SDK takes time to load

    start = time.perf_counter()
    found = reconcile(settings.openfga, dry_run=False)
    return found.missing, time.perf_counter() - start


def _ensure_empty(url: str) -> None:
    try:
        with psycopg.connect(url) as connection:
            rows = connection.execute("select 1 from pg_tables where schemaname = 'public' limit 1").fetchall()
    except psycopg.Error as error:
        raise BenchmarkError(f"The database of --database cannot be used: {str(error).strip()}") from error
    if rows:
        raise BenchmarkError("The database of --database has tables: it must be an empty one, which will be filled")


def _postmaster(url: str) -> int | None:
    """The process above all sessions, if it is on this machine."""
    with psycopg.connect(url) as connection:
        session = processes.stat_of(connection.info.backend_pid)
    return session.parent if session is not None and session.name.startswith("postgres") else None


def _remove_store() -> None:
    from lakewarden import config  # noqa: PLC0415 needs settings
    from lakewarden.authz.openfga import store  # noqa: PLC0415 its SDK takes time to load

    settings = config.current().openfga
    try:
        identifier = store.migrated(settings).id
    except Unavailable:
        return  # it was not made
    token = os.environ.get(API_TOKEN)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    address = f"{(settings.api_url or '').rstrip('/')}/stores/{identifier}"
    with urllib3.PoolManager(retries=False, timeout=30.0) as http:
        try:
            status = http.request("DELETE", address, headers=headers).status
        except urllib3.exceptions.HTTPError as error:
            raise BenchmarkError(f"The store {settings.store} cannot be deleted from OpenFGA: {error}") from error
    if status != HTTPStatus.NO_CONTENT:
        raise BenchmarkError(f"OpenFGA answered {status} when the store {settings.store} was to be deleted")
