"""Drives a server with N connections, each asking again as soon as it is answered, and measures one slice."""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import uvloop

from benchmarks.failures import BenchmarkError
from benchmarks.load.http1 import Answer, Connection
from benchmarks.load.requests import Endpoint

Cpu = dict[str, int]
"""Nanoseconds of CPU by part of the system (`server`, `postgres`, `other`)."""

_DRAIN_S = 60.0


class Workload(Protocol):
    """What the clients ask; `good` statuses are successes, all others errors."""

    good: frozenset[int]
    is_head: bool
    keeps_bodies: bool

    def request(self, client: int) -> bytes:
        """The next request of a client, complete."""

    def answered(self, client: int, answer: Answer) -> None:
        """Called with each answer, in order, before the client's next request."""

    def lost(self, client: int) -> None:
        """Called when a connection ended before the answer: what the request did is not known."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One slice: `warm_up_s` without measuring, then `seconds` with."""

    clients: int
    seconds: float
    warm_up_s: float = 0.3


@dataclass(slots=True)
class Slice:
    """What one slice measured. `latencies_ns` are of good answers; `answered` counts those outside it too."""

    seconds: float = 0.0
    latencies_ns: list[int] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    received_bytes: int = 0
    sent_bytes: int = 0
    answered: int = 0
    cpu_ns: Cpu = field(default_factory=dict)
    generator_cpu_ns: int = 0

    @property
    def good(self) -> int:
        return len(self.latencies_ns)

    @property
    def requests(self) -> int:
        """Answers in the measured time, good or not."""
        return self.good + self.errors.total()


def drive(endpoint: Endpoint, workload: Workload, plan: Plan, *, read_cpu: Callable[[], Cpu] = dict) -> Slice:
    """Measure one slice. Requests under way at its end are answered before it returns, but not counted.

    Raises BenchmarkError when the server cannot be reached or does not answer any more.
    """
    gc.collect()
    gc.disable()  # a pause of the generator would count as the server's latency
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(endpoint, workload, plan, read_cpu))
    finally:
        gc.enable()


async def _run(endpoint: Endpoint, workload: Workload, plan: Plan, read_cpu: Callable[[], Cpu]) -> Slice:
    return await _Run(endpoint, workload, plan, read_cpu).run()


class _Run:
    """The state that the clients of one slice share."""

    def __init__(self, endpoint: Endpoint, workload: Workload, plan: Plan, read_cpu: Callable[[], Cpu]) -> None:
        self.endpoint = endpoint
        self.workload = workload
        self.result = Slice()
        self.is_measuring = False
        self.is_over = False
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._plan = plan
        self._read_cpu = read_cpu

    def fail(self, error: Exception) -> None:
        """End the slice with this error; the first one counts."""
        if not self._failed.done():
            self._failed.set_exception(error)

    async def run(self) -> Slice:
        # what a protocol's callback raises reaches the loop and nobody else
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.fail(_error_of(context)))
        clients = [_Client(self, number) for number in range(self._plan.clients)]
        await asyncio.gather(*(client.connect() for client in clients))
        for client in clients:
            client.ask()
        await self._for(self._plan.warm_up_s)
        before, own, start = self._read_cpu(), time.process_time_ns(), time.perf_counter_ns()
        self.is_measuring = True
        await self._for(self._plan.seconds)
        self.is_measuring, self.is_over = False, True
        result = self.result
        result.seconds = (time.perf_counter_ns() - start) / 1e9
        result.generator_cpu_ns = time.process_time_ns() - own
        after = self._read_cpu()
        result.cpu_ns = {part: after[part] - before[part] for part in after if part in before}
        await self._drain(clients)
        return result

    async def _for(self, seconds: float) -> None:
        await asyncio.wait([self._failed], timeout=seconds)
        if self._failed.done():
            self._failed.result()

    async def _drain(self, clients: list["_Client"]) -> None:
        idle = asyncio.ensure_future(_all_idle(clients))
        await asyncio.wait([idle, self._failed], timeout=_DRAIN_S, return_when=asyncio.FIRST_COMPLETED)
        if self._failed.done():
            self._failed.result()
        if not idle.done():
            raise BenchmarkError(f"The server left requests without an answer for {_DRAIN_S:.0f} s")
        for client in clients:
            client.close()


async def _all_idle(clients: list["_Client"]) -> None:
    for client in clients:
        await client.idle.wait()


def _error_of(context: dict[str, object]) -> Exception:
    error = context.get("exception")
    return error if isinstance(error, Exception) else BenchmarkError(str(context.get("message")))


class _Client:
    """One connection of the closed loop."""

    def __init__(self, run: _Run, number: int) -> None:
        self.idle = asyncio.Event()
        self._run = run
        self._number = number
        self._connection: Connection | None = None
        self._asked_at = 0
        self._sent = 0
        self._waits = False
        self._reconnecting: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        endpoint = self._run.endpoint
        loop = asyncio.get_running_loop()
        try:
            _, self._connection = await loop.create_connection(
                lambda: Connection(self._answered, self._lost), endpoint.host, endpoint.port
            )
        except OSError as error:
            raise BenchmarkError(f"{endpoint.host}:{endpoint.port} cannot be reached: {error.strerror}") from error

    def ask(self) -> None:
        run = self._run
        if run.is_over or self._connection is None:
            self.idle.set()
            return
        request = run.workload.request(self._number)
        self._sent = len(request)
        self._waits = True
        self._asked_at = time.perf_counter_ns()
        self._connection.ask(request, is_head=run.workload.is_head, keep=run.workload.keeps_bodies)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _answered(self, answer: Answer) -> None:
        now = time.perf_counter_ns()
        run = self._run
        result = run.result
        self._waits = False
        result.answered += 1
        if run.is_measuring:
            result.received_bytes += answer.size
            result.sent_bytes += self._sent
            if answer.status in run.workload.good:
                result.latencies_ns.append(now - self._asked_at)
            else:
                result.errors[str(answer.status)] += 1
        run.workload.answered(self._number, answer)
        if run.is_over or not answer.closes:
            self.ask()

    def _lost(self) -> None:
        """The server closed the connection: an error when it owed an answer; go on with a new one."""
        self._connection = None
        if self._waits:
            self._run.workload.lost(self._number)
            if self._run.is_measuring:
                self._run.result.errors["connection lost"] += 1
        self._waits = False
        if self._run.is_over:
            self.idle.set()
        else:
            self._reconnecting = asyncio.get_running_loop().create_task(self._go_on())

    async def _go_on(self) -> None:
        try:
            await self.connect()
        except BenchmarkError as error:
            self._run.fail(error)
        else:
            self.ask()
