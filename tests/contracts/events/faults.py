"""What every broker's test does to the relay: workers that are killed or frozen while changes go on."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.db import connections

from lakewarden.events import log
from lakewarden.events.models import EventSink
from tests.integration.events.events import change

OBJECTS: Final = 20
CHANGES: Final = int(os.environ.get("LAKEWARDEN_TEST_EVENTS", "3000"))
LEASE_S: Final = 3
Received = Callable[[], Sequence[Mapping[str, Any]]]


class Workers:
    """Processes of `lakewarden work` with one sink, `lake`."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._environment, self._log = environment, log
        self.stream = ""
        self.alive: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "lakewarden.cli", "work"]
            self.alive.append(subprocess.Popen(command, env=self._environment, stdout=log, stderr=log))

    def kill_oldest(self) -> None:
        oldest = self.alive.pop(0)
        oldest.kill()
        oldest.wait(20)

    def serving(self) -> subprocess.Popen[bytes] | None:
        """The one that holds the lease."""
        holders = EventSink.objects.filter(name="lake").values_list("leased_by", flat=True)
        return next((each for each in self.alive for holder in holders if f"/{each.pid}/" in holder), None)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            said = f"{list(EventSink.objects.values())}\n{self._log.read_text()[-3000:]}"
            assert time.monotonic() < deadline, f"{what} did not come:\n{said}"
            time.sleep(0.05)


@contextmanager
def running(sink: Mapping[str, str], *, folder: Path) -> Iterator[Workers]:
    """`sink` are the settings below `…__SINKS__LAKE__`."""
    chosen = {f"LAKEWARDEN__EVENTS__SINKS__LAKE__{name}": value for name, value in sink.items()}
    environment = {
        **os.environ,
        **chosen,
        "LAKEWARDEN__EVENTS__SINKS__LAKE__FROM_OLDEST": "true",
        "LAKEWARDEN__EVENTS__SINKS__LAKE__BATCH": "50",
        "LAKEWARDEN__EVENTS__LEASE_S": str(LEASE_S),
    }
    workers = Workers(environment, folder / "workers.log")
    try:
        yield workers
    finally:
        for each in workers.alive:
            each.kill()
            each.wait(20)


class Writing:
    """A thread that changes objects until it has made CHANGES of them, and `finish` was called."""

    def __init__(self) -> None:
        self.made = 0
        self._may_end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def finish(self) -> None:
        self._may_end.set()
        self._thread.join(120)

    def _run(self) -> None:
        while self.made < CHANGES or not self._may_end.is_set():
            change(f"t{self.made % OBJECTS}", self.made // OBJECTS)
            self.made += 1
            time.sleep(0.001)
        connections.close_all()


def storm(workers: Workers, *, stop: Callable[[], None], start: Callable[[], None], received: Received) -> None:
    """Workers are killed again and again, and the broker is away for a while: every event arrives, in order."""
    seed = random.randrange(1_000_000)  # noqa: S311 no secret
    chance = random.Random(seed)  # noqa: S311 no secret
    writing = Writing()
    # two serve at once; the broker lives as long as the thread that starts it
    workers.start()
    workers.start()
    for _ in range(4):
        before = delivered()
        workers.until(lambda before=before: delivered() > before, "any delivery")  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.5))
        workers.kill_oldest()
        workers.start()
    stop()
    time.sleep(3)
    start()
    writing.finish()
    workers.until(all_delivered, f"the last of {writing.made} events, seed {seed}")
    judge(received(), made=writing.made, said=f"seed {seed}")


def frozen(workers: Workers, *, received: Received) -> None:
    """The worker that serves is stopped for longer than its lease while another one takes over, and then goes on."""
    writing = Writing()
    workers.start()
    workers.start()
    workers.until(lambda: delivered() > 0 and workers.serving() is not None, "any delivery")
    for _ in range(2):
        stopped = workers.serving()
        assert stopped is not None
        stopped.send_signal(signal.SIGSTOP)
        workers.until(lambda stopped=stopped: workers.serving() not in {None, stopped}, "another worker")  # type: ignore[misc]
        before = delivered()
        workers.until(lambda before=before: delivered() > before, "a delivery by the other worker")  # type: ignore[misc]
        stopped.send_signal(signal.SIGCONT)
    writing.finish()
    workers.until(all_delivered, "the last event")
    judge(received(), made=writing.made, said="frozen twice")


def judge(events: Sequence[Mapping[str, Any]], *, made: int, said: str) -> None:
    """Every event is there, and the first arrivals of each object's events are in order."""
    first: dict[str, Mapping[str, Any]] = {}
    for each in events:
        first.setdefault(each["id"], each)
    assert len(first) == made, said
    for name in (f"t{number}" for number in range(OBJECTS)):
        versions = [each["data"]["version"] for each in first.values() if each["objectid"] == name]
        assert versions == sorted(versions), (said, name)
    print(f"\n{made} events, {len(events) - made} of them more than once, {said}")  # noqa: T201 the figures


def delivered() -> int:
    return sum(EventSink.objects.filter(name="lake").values_list("delivered", flat=True))


def all_delivered() -> bool:
    """Positions have gaps: a killed relay had taken numbers."""
    has_new, end = log.look()
    return not has_new and delivered() == end
