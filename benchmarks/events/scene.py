"""A server, both brokers, a webhook, and workers that serve them, for `python -m benchmarks.events`."""

import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import django
from django.db import connection, connections

from benchmarks.events import lake as lakes
from benchmarks.events import receivers
from benchmarks.events.lake import Lake
from benchmarks.events.receivers import Events, Webhook
from benchmarks.failures import BenchmarkError
from tests.servers import kafka, nats, postgres
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsServer

_NAME: Final = "events"
_SINKS: Final = ("kafka", "nats", "webhook")
_KILLS: Final = 9
_AWAY_FROM: Final = 3
_AWAY_TO: Final = 6
_SOON_S: Final = 10.0
_TICK: Final = os.sysconf("SC_CLK_TCK")


@contextmanager
def opened() -> Iterator["Scene"]:
    """Django uses the database from here on."""
    with (
        tempfile.TemporaryDirectory(prefix="lw-bench-events-") as folder,
        postgres.shared(),
        kafka.start() as broker,
        nats.start() as server,
        Webhook() as webhook,
        lakes.opened(Path(folder)) as lake,
    ):
        os.environ["DJANGO_SETTINGS_MODULE"] = "lakewarden.settings"
        os.environ.update(lake.server.settings)
        django.setup()
        receivers.make_topic(broker.plain, _NAME)
        receivers.make_stream(server.url, _NAME)
        scene = Scene(broker, server, webhook, lake, Path(folder, "workers.log"))
        try:
            yield scene
        finally:
            scene.kill(len(scene.workers))
            connections.close_all()
            webhook.shutdown()


class Scene:
    def __init__(self, broker: KafkaServer, server: NatsServer, webhook: Webhook, lake: Lake, log: Path) -> None:
        self.kafka, self.nats, self.webhook, self.lake, self._log = broker, server, webhook, lake, log
        self.workers: list[subprocess.Popen[bytes]] = []

    def storm(self, commits: int) -> bool:
        """Whether every event arrived at all three, in order for each table."""
        writing = threading.Thread(target=self.lake.commit_many, args=(commits,))
        self.start(2)
        writing.start()
        chance, killed = random.Random(7), 0  # noqa: S311 no secret
        while writing.is_alive() or killed < _KILLS:
            before, soon = self._delivered(), time.monotonic() + _SOON_S
            while not self.webhook.is_away and self._delivered() == before and time.monotonic() < soon:
                time.sleep(0.05)
            time.sleep(chance.uniform(0, 2))
            self.kill(1)
            self.start(1)
            killed += 1
            if killed == _AWAY_FROM:
                self.kafka.stop()
                self.nats.stop()
                self.webhook.is_away = True
            if killed == _AWAY_TO:
                self.kafka.start()
                self.nats.start()
                self.webhook.is_away = False
        writing.join()
        self.until_delivered()
        print(f"\n{commits} commits over REST, {killed} relays killed, all sinks away once\n")
        print("| sink | distinct events of commits | more than once | in order for each table |\n|---|---|---|---|")
        outcomes = []
        for name, events in self._received().items():
            mine = [each for each in events if each["type"] == "updateTable"]
            distinct, in_order = len({each["id"] for each in mine}), _in_order(mine)
            print(f"| {name} | {distinct} | {len(mine) - distinct} | {'yes' if in_order else 'NO'} |", flush=True)
            outcomes.append(distinct == commits and in_order)
        return all(outcomes)

    def speed(self, changes: int) -> None:
        """Of one worker, each sink alone: how long it takes for what waits in the outbox."""
        print("\n| sink | events per second | per second of processor time | core |\n|---|---|---|---|")
        for name in _SINKS:
            self.kill(len(self.workers))
            change_many(changes)
            self.start(1, only=name)
            self.until(partial(self.is_served, name), "the worker")
            began, used = time.monotonic(), self.processor_s()
            before = self._sent(name)
            self.until(partial(self._is_reached, name), "the last event")
            sent, took, busy = self._sent(name) - before, time.monotonic() - began, self.processor_s() - used
            print(f"| {name} | {sent / took:.0f} | {sent / busy:.0f} | {busy / took:.2f} |", flush=True)
        self.kill(len(self.workers))

    def kill(self, count: int) -> None:
        for _ in range(count):
            oldest = self.workers.pop(0)
            oldest.kill()
            oldest.wait(20)

    def start(self, count: int, *, only: str = "") -> None:
        """Workers that serve one sink; empty: all of them."""
        environment = {**os.environ, **self._settings(only), "LAKEWARDEN__EVENTS__LEASE_S": "3"}
        for _ in range(count):
            with self._log.open("ab") as log:
                command = [sys.executable, "-m", "lakewarden.cli", "work"]
                self.workers.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    def _settings(self, only: str) -> Mapping[str, str]:
        sinks = {
            "kafka": {"BOOTSTRAP_SERVERS": self.kafka.plain, "TOPIC": _NAME, "TIMEOUT_S": "3"},
            "nats": {"SERVERS": self.nats.url, "STREAM": _NAME, "SUBJECT": _NAME, "TIMEOUT_S": "3"},
            "webhook": {"URL": self.webhook.url, "SECRET": "s" * 32, "ALLOW_PRIVATE_ADDRESSES": "true"},
        }
        chosen = {only: sinks[only]} if only else sinks
        prefix = "LAKEWARDEN__EVENTS__SINKS"
        return {
            **{f"{prefix}__{sink}__FROM_OLDEST": "true" for sink in chosen},
            **{
                f"{prefix}__{sink}__{sink}__{key}": value
                for sink, keys in chosen.items()
                for key, value in keys.items()
            },
        }

    def _received(self) -> dict[str, Events]:
        return {
            "Kafka": receivers.of_kafka(self.kafka.plain, _NAME),
            "NATS": receivers.of_nats(self.nats.url, _NAME),
            "webhook": list(self.webhook.events),
        }

    def until_delivered(self) -> None:
        self.until(lambda: all(map(self._is_reached, _SINKS)), "the last event")

    def _delivered(self) -> float:
        return row("select coalesce(sum(delivered), 0) from event_sink")[0]

    def _is_reached(self, sink: str) -> bool:
        delivered, end, waiting = row(
            "select (select delivered from event_sink where name = %s), (select max(position) from event_log), "
            "(select exists (select 1 from outbox_event))",
            sink,
        )
        return not waiting and delivered == end

    def is_served(self, sink: str) -> bool:
        (holder,) = row("select (select leased_by from event_sink where name = %s)", sink)
        return any(f"/{each.pid}/" in str(holder) for each in self.workers)

    def _sent(self, sink: str) -> int:
        (sent,) = row("select sent from event_sink where name = %s", sink)
        return int(sent)

    def processor_s(self) -> float:
        """The workers' own time and that of the system for them."""
        return sum(_processor_s(each.pid) for each in self.workers)

    def server_s(self) -> float:
        return _processor_s(self.lake.server.process.pid)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 600
        while not condition():
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{what} did not come: {self._log.read_text()[-2000:]}")
            time.sleep(0.05)


def _processor_s(process: int) -> float:
    stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / _TICK


def row(query: str, *parameters: str) -> tuple[float, ...]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return tuple(cursor.fetchone())


def change_many(count: int) -> None:
    """Changes that only the outbox knows: far faster than commits."""
    from tests.integration.events.events import change  # noqa: PLC0415 Django must be set up

    for number in range(count):
        change(f"t{number % lakes.TABLES}", number)


def _in_order(events: Events) -> bool:
    first: dict[str, dict[str, object]] = {}
    for each in events:
        first.setdefault(each["id"], each)
    versions: dict[str, list[int]] = {}
    for each in first.values():
        versions.setdefault(str(each["objectid"]), []).append(each["data"]["version"])  # type: ignore[index]
    return all(found == sorted(found) for found in versions.values())


def middle(values: list[float]) -> str:
    """The median, and the quarters around it."""
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.2f} ({low:.2f} to {high:.2f})"


def certain_median(values: list[float]) -> str:
    """The median, and the interval that holds the true one in 95 of 100 runs, whatever the distribution is."""
    ranked = sorted(values)
    outside = max(0, int((len(ranked) - 1.96 * math.sqrt(len(ranked))) / 2) - 1)
    return f"{statistics.median(ranked):.2f} ({ranked[outside]:.2f} to {ranked[-1 - outside]:.2f})"
