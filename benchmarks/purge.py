"""Purges of a bucket whose workers are killed: is every object gone, is nothing else, and how long did it take?

Starts `lakewarden dev --warehouse s3`, puts objects below a table's location and beside it, drops the table, and kills
the worker (-9) again and again while it removes them; another worker takes over after the minute that the queue waits.
At the end the store's own lists are read. The exit code is 1 if an object of the table is left, one of its neighbours
is gone, or the ledger has another count than objects were put.

    python -m benchmarks.purge                                       # 50,000 objects, 3 kills: some minutes
    python -m benchmarks.purge --objects 1000000 --kills 5 --files   # a million inodes and 4 GB of disk

With `--files` the objects are not put over S3, which takes half an hour for a million of them on two cores: the store
is versitygw, which keeps objects as plain files, and these are made.
"""

import argparse
import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import obstore
import urllib3
from obstore.store import S3Store

from benchmarks.failures import BenchmarkError
from benchmarks.machine import processes
from benchmarks.metadata import schema
from benchmarks.rest_client import RestClient, TokenSource
from benchmarks.stack import DevelopmentServer
from standalone.commands import lakewarden_command
from standalone.errors import EmbeddedError
from standalone.go_programs import provide
from standalone.ports import HOST
from standalone.process import ManagedProcess
from standalone.ready import ReadyInfo, ReadyStore, read_ready_file
from standalone.s3.options import S3Options
from standalone.s3.programs import VERSITYGW, Keys
from standalone.signals import interrupting
from standalone.web_server import start_web_server

_QUEUES: Final = "LAKEWARDEN__WORKER__QUEUES"
_OTHER_QUEUES: Final = "soft_deletion,task_log_cleanup,housekeeping"
_WRITERS: Final = 48
_LOOK_S: Final = 0.5
_ENDED: Final = {"SUCCESS", "FAILED", "CANCELLED"}
_LONGEST_STEP_S: Final = 10.0
"""A pause without progress that is longer is that of a worker that was killed."""
_GIVE_UP_S: Final = 4 * 3600.0


@dataclass(slots=True)
class Outcome:
    """Seconds, and what was wrong."""

    filling_s: float = 0.0
    removing_s: float = 0.0
    working_s: float = 0.0
    kills: int = 0
    attempts: int = 0
    peak_kib: int = 0
    problems: list[str] = field(default_factory=list)


class Bucket:
    """The store's own view of a warehouse's bucket."""

    def __init__(self, store: ReadyStore) -> None:
        self._name = store.bucket
        self._store = S3Store(
            store.bucket,
            endpoint=store.endpoint,
            region=store.region,
            access_key_id=store.access_key_id,
            secret_access_key=store.secret_access_key,
            client_options={"allow_http": True, "timeout": timedelta(seconds=120)},
        )

    def key_of(self, location: str) -> str:
        return location.removeprefix(f"s3://{self._name}/")

    def put(self, keys: Iterator[str]) -> None:
        """An object of four bytes each."""

        async def put_all() -> None:
            async def put_some() -> None:
                for key in keys:
                    await obstore.put_async(self._store, key, b"rows", use_multipart=False)

            await asyncio.gather(*(put_some() for _ in range(_WRITERS)))

        asyncio.run(put_all())

    def make_files(self, keys: Iterator[str], *, root: Path) -> None:
        """As `put`, in the folder `root` of a store of plain files."""
        for key in keys:
            path = f"{root}/{self._name}/{key}"
            try:
                file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            except FileNotFoundError:
                os.makedirs(path.rpartition("/")[0])  # noqa: PTH103 many
                file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            os.write(file, b"rows")
            os.close(file)

    def count(self, folder: str) -> int:
        return sum(len(page) for page in obstore.list(self._store, prefix=f"{folder}/"))


class Catalog:
    """What an administrator asks of the server."""

    def __init__(self, info: ReadyInfo) -> None:
        self._info = info
        engine, admin = info.engine, info.admin
        token = TokenSource(
            info.token_endpoint, client_id=engine.client_id, client_secret=engine.client_secret, scope=engine.scope
        )
        self._admin = TokenSource(
            info.token_endpoint, client_id=admin.client_id, client_secret=admin.client_secret, scope=engine.scope
        )
        self._rest = RestClient(info.catalog_uri, warehouse=info.warehouse.name, token=token)
        self._http = urllib3.PoolManager(retries=False, timeout=60.0)

    def new_table(self) -> str:
        """Its location."""
        self._rest.create_namespace("purged")
        return str(self._rest.create_table("purged", "orders", schema(2))["metadata"]["location"])

    def drop(self) -> None:
        self._rest.drop_namespace("purged")

    def purge(self) -> dict[str, Any]:
        """The only purge, with the details of its last attempt."""
        (task,) = self._tasks("POST", "list", {"queue-name": ["tabular_purge"]})["tasks"]
        return self._tasks("GET", f"by-id/{task['task-id']}")

    def _tasks(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        url = f"{self._info.management_uri}/v1/warehouse/{self._info.warehouse.id}/task/{path}"
        headers = {"Authorization": f"Bearer {self._admin()}"}
        answer = self._http.request(method, url, headers=headers, **({} if body is None else {"json": body}))
        if answer.status != 200:  # noqa: PLR2004
            raise BenchmarkError(f"{method} {url} was answered with {answer.status}: {answer.data[:300]!r}")
        return dict(answer.json())


class Workers:
    """Worker processes for purges only, one at a time, beside that of the development server."""

    def __init__(self, development: int, log: Path) -> None:
        self._environment = _environment_of_worker(development) | {_QUEUES: "tabular_purge"}
        self._log = log
        self._child: subprocess.Popen[bytes] | None = None
        self.peak_kib = 0

    def start(self) -> None:
        with self._log.open("ab") as output:
            self._child = subprocess.Popen(
                lakewarden_command("work"), stdout=output, stderr=output, env=self._environment, cwd="/"
            )

    def kill(self) -> None:
        if self._child is None:
            return
        self._child.send_signal(signal.SIGKILL)
        _, _, used = os.wait4(self._child.pid, 0)
        self._child.returncode = 0  # it is waited for
        self._child, self.peak_kib = None, max(self.peak_kib, used.ru_maxrss)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.purge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--objects", type=int, default=50_000, help="of the table that is dropped [50000]")
    parser.add_argument("--kills", type=int, default=3, help="how often its worker is killed [3]")
    parser.add_argument("--files", action="store_true", help="make the objects as files, on versitygw")
    parser.add_argument("--seed", type=int, default=1, help="when the worker is killed [1]")
    options = parser.parse_args()
    if options.objects < 1 or options.kills < 0:
        parser.error("--objects must be at least 1, and --kills at least 0")
    if not processes.is_supported():
        sys.stderr.write("Error: processes of the server are found in /proc: this works on Linux only\n")
        return 1
    os.environ[_QUEUES] = _OTHER_QUEUES  # of the development server's own worker
    try:
        with interrupting(), ExitStack() as stack:
            endpoint, files = stack.enter_context(_versitygw()) if options.files else (None, None)
            server = stack.enter_context(DevelopmentServer(storage="s3", endpoint=endpoint))
            found = measured(options, server.ready, log=stack.enter_context(_log()), files=files)
    except (BenchmarkError, EmbeddedError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    verdict = "nothing left, nothing else gone, the count is exact" if not found.problems else "; ".join(found.problems)
    print(
        f"{options.objects:,} objects put in {found.filling_s:.0f} s; removed in {found.removing_s:.0f} s with "
        f"{found.kills} kills and {found.attempts} attempts, of which {found.working_s:.0f} s with a worker at work "
        f"({options.objects / max(found.working_s, 1):,.0f} a second), at most {found.peak_kib / 1024:.0f} MiB of "
        f"memory: {verdict}"
    )
    return 1 if found.problems else 0


def measured(options: argparse.Namespace, ready: Path, *, log: Path, files: Path | None) -> Outcome:
    info = read_ready_file(ready)
    assert info.s3 is not None  # noqa: S101 as it was started
    found, bucket, catalog = Outcome(), Bucket(info.s3), Catalog(info)
    location = bucket.key_of(catalog.new_table())
    neighbours = [f"{location}{ending}" for ending in ("2", ".old", "_", "-")]
    own = bucket.count(location) + options.objects
    began = time.monotonic()
    bucket.put(f"{each}/f" for each in neighbours)
    keys = _told(f"{location}/data/p={n // 1000}/{n}.parquet" for n in range(options.objects))
    if files is not None:
        bucket.make_files(keys, root=files)
    else:
        bucket.put(keys)
    found.filling_s = time.monotonic() - began
    _say(f"{options.objects:,} objects put in {found.filling_s:.0f} s")
    workers = Workers(info.pid, log)
    catalog.drop()
    try:
        _remove(catalog, workers, found, goals=_goals(own, options.kills, seed=options.seed))
    finally:
        workers.kill()  # told to end, it would end its purge first
        found.peak_kib = workers.peak_kib
    found.problems += _problems(catalog, bucket, location, own=own, neighbours=neighbours)
    return found


def _remove(catalog: Catalog, workers: Workers, found: Outcome, *, goals: list[int]) -> None:
    began = time.monotonic()
    removed, moved_at = 0, began
    workers.start()
    while (task := catalog.purge())["status"] not in _ENDED:
        now, counted = time.monotonic(), _removed(task)
        if counted > removed:
            found.working_s += min(now - moved_at, _LONGEST_STEP_S)
            removed, moved_at = counted, now
        if goals and removed >= goals[0]:
            goals.pop(0)
            workers.kill()
            found.kills += 1
            _say(f"{removed:,} removed after {now - began:.0f} s: the worker is killed")
            workers.start()
        if now - moved_at > _GIVE_UP_S:
            raise BenchmarkError(f"The purge has not moved for {_GIVE_UP_S:.0f} s: {task}")
        time.sleep(_LOOK_S)
    found.working_s += min(time.monotonic() - moved_at, _LONGEST_STEP_S)
    found.removing_s, found.attempts = time.monotonic() - began, task["attempt"]


def _goals(own: int, kills: int, *, seed: int) -> list[int]:
    """How many are gone at each kill: one in each part of the purge."""
    chance = random.Random(seed)  # noqa: S311 it must be repeatable, not secret
    part = own / (kills + 1)
    return [int(part * (number + chance.uniform(0.2, 1))) for number in range(kills)]


def _problems(catalog: Catalog, bucket: Bucket, location: str, *, own: int, neighbours: list[str]) -> list[str]:
    task, found = catalog.purge(), []
    if task["status"] != "SUCCESS":
        found.append(f"the purge ended as {task['status']}: {task}")
    if left := bucket.count(location):
        found.append(f"{left:,} objects are left")
    if missing := [each for each in neighbours if bucket.count(each) != 1]:
        found.append(f"neighbours are gone: {', '.join(missing)}")
    if _removed(task) != own:
        found.append(f"the ledger has {_removed(task):,} objects instead of {own:,}")
    return found


def _removed(task: dict[str, Any]) -> int:
    return int((task.get("execution-details") or {}).get("files-removed", 0))


@contextmanager
def _versitygw() -> Iterator[tuple[str, Path]]:
    """A store of plain files: its address and folder. Its keys are in the environment, where `lakewarden dev` looks."""
    folder, keys = Path(tempfile.mkdtemp(prefix="lakewarden-purge-store-")), Keys.new()
    os.environ |= {"AWS_ACCESS_KEY_ID": keys.access_key_id, "AWS_SECRET_ACCESS_KEY": keys.secret_access_key}
    executable = provide(VERSITYGW.go)

    def make(port: int) -> ManagedProcess:
        launch = VERSITYGW.launch(
            executable, address=f"{HOST}:{port}", directory=folder, root=keys, region=S3Options.region
        )
        return ManagedProcess(
            "`versitygw`", launch.command, log=folder / "log", environment=launch.environment, directory=folder
        )

    try:
        server, port = start_web_server(make, path=VERSITYGW.health)
        with server:
            yield f"http://{HOST}:{port}", folder / "data"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _environment_of_worker(development: int) -> dict[str, str]:
    """Of the server's own worker: the database, and the keys of its secrets."""
    for each in processes.tree(development):
        words = Path(f"/proc/{each.pid}/cmdline").read_bytes().split(b"\0")
        if b"work" in words:
            lines = Path(f"/proc/{each.pid}/environ").read_bytes().split(b"\0")
            return dict(line.decode().split("=", 1) for line in lines if b"=" in line)
    raise BenchmarkError("The worker of `lakewarden dev` is not running")


def _told(keys: Iterator[str]) -> Iterator[str]:
    """Says how far it is."""
    for number, key in enumerate(keys, 1):
        yield key
        if number % 100_000 == 0:
            _say(f"{number:,} objects put")


@contextmanager
def _log() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="lakewarden-purge-"))
    try:
        yield folder / "worker.log"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _say(sentence: str) -> None:
    sys.stderr.write(f"  {sentence}\n")


if __name__ == "__main__":
    sys.exit(main())
