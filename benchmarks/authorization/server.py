"""The application in this process, on an installation and a directory of its own."""

import asyncio
import json as json_codec
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from benchmarks.authorization import counting
from benchmarks.authorization.installation import Installation
from benchmarks.failures import BenchmarkError
from benchmarks.machine import processes

A = TypeVar("A")

Json = dict[str, Any]
Request = tuple[str, str, str, Json | None]
"""Caller, method, path and body."""

ADMIN = "admin"
_REFUSED = 400
_LONGEST_S = 10


@dataclass(frozen=True, slots=True)
class Timed:
    """Milliseconds of the calls (`cpu`: of this process, Postgres and OpenFGA together, on average), and what the last
    one asked for: statements, questions to the authorizer, calls to OpenFGA.
    """

    median: float
    p95: float
    cpu: float
    statements: int
    questions: int
    calls: int


def together(times: Sequence[Timed]) -> Timed:
    """Calls that were timed one by one; the first two are warming up."""
    ordered = sorted(each.median for each in times[2:])
    cpu = statistics.mean(each.cpu for each in times[2:])
    last = times[-1]
    late = ordered[int(len(ordered) * 0.95)]
    return Timed(statistics.median(ordered), late, cpu, last.statements, last.questions, last.calls)


@dataclass
class InProcess:
    """`url` is its database's; any name is a caller, whose id is `oidc~<name>`. `headers` are sent besides."""

    url: str
    directory: Path
    counts: counting.Counts
    _runner: asyncio.Runner = field(repr=False)
    _beside: Sequence[int]
    headers: dict[str, str] = field(default_factory=dict)

    def run(self, asked: Coroutine[Any, Any, A]) -> A:
        """The result of a coroutine, on the loop that the application has its connections on."""
        return self._runner.run(asked)

    def call(self, user: str, method: str, path: str, json: Json | None = None) -> Json:
        """The content of an answer that must be a success."""
        status, body = self._runner.run(self._asked(user, method, path, json))
        if status >= _REFUSED:
            raise BenchmarkError(f"{method} {path} of {user} was answered with {status}: {body[:500].decode()}")
        content: Json = json_codec.loads(body) if body else {}
        return content

    def timed(self, calls: Sequence[Request], *, warm_up: int = 5, expect: int = 200) -> Timed:
        """The cost of the calls, made one after the other; all are answered with `expect`."""
        return self.spent([lambda asked=asked: self.expected(asked, expect) for asked in calls], warm_up=warm_up)  # type: ignore[misc]

    def spent(self, calls: Sequence[Callable[[], object]], *, warm_up: int = 5) -> Timed:
        """As `timed`, for functions. The first `warm_up` are not measured, nor any that come after ten seconds."""
        for call in calls[:warm_up]:
            call()
        found, cpu, end = [], self._cpu_ns(), time.perf_counter() + _LONGEST_S
        for call in calls[warm_up:]:
            self.counts.reset()
            start = time.perf_counter()
            call()
            found.append((time.perf_counter() - start) * 1e3)
            if time.perf_counter() > end:
                break
        cpu, ordered = self._cpu_ns() - cpu, sorted(found)
        late = ordered[int(len(ordered) * 0.95)]
        counts = self.counts
        asked = counts.statements, counts.questions, counts.calls
        return Timed(statistics.median(ordered), late, cpu / len(ordered) / 1e6, *asked)

    def expected(self, asked: Request, expect: int) -> None:
        """Raises BenchmarkError for any other answer."""
        user, method, path, _ = asked
        status, body = self._runner.run(self._asked(*asked))
        if status != expect:
            raise BenchmarkError(f"{method} {path} of {user}: {status} instead of {expect}: {body[:500].decode()}")

    def status(self, asked: Request) -> int:
        return self._runner.run(self._asked(*asked))[0]

    def _cpu_ns(self) -> int:
        return time.process_time_ns() + sum(processes.cpu_ns(processes.tree(pid)) for pid in self._beside)

    async def _asked(self, user: str, method: str, path: str, json: Json | None) -> tuple[int, bytes]:
        from lakewarden.asgi import application  # noqa: PLC0415 it reads the configuration when it is imported

        content = b"" if json is None else json_codec.dumps(json).encode()
        raw, _, query = path.partition("?")
        headers = {"host": "localhost", "authorization": f"Bearer {user}", "content-type": "application/json"}
        headers |= self.headers
        scope = {
            "type": "http",
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": raw,
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 50000),
        }
        messages: list[MutableMapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            messages.append(message)

        await application(scope, receive, send)
        return messages[0]["status"], b"".join(each.get("body", b"") for each in messages[1:])


@contextmanager
def in_process(installation: Installation) -> Iterator[InProcess]:
    """A migrated, bootstrapped server; only one in the life of a process."""
    with (
        tempfile.TemporaryDirectory(prefix="lw-rights-") as directory,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        base = Path(directory)
        base.chmod(0o711)
        (base / "lake").mkdir()
        with installation.running(base) as url:
            counts = counting.Counts()
            counting.install(counts)
            server = InProcess(url, base / "lake", counts, runner, installation.processes(url))
            try:
                server.call(ADMIN, "POST", "/management/v1/bootstrap", {"accept-terms-of-use": True})
                yield server
            finally:
                runner.run(_closed())


async def _closed() -> None:
    """Close the application's connections."""
    from django.db import connections  # noqa: PLC0415 needs settings

    from lakewarden.hot.connections import close_all  # noqa: PLC0415 as above
    from lakewarden.http import request_threads  # noqa: PLC0415 as above

    await close_all()
    await asyncio.get_running_loop().run_in_executor(request_threads.THREADS.executor, connections.close_all)
    connections.close_all()
