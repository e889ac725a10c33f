"""A database, both brokers, a webhook, and workers that serve them, for `python -m benchmarks.events`."""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import django
from django.core.management import call_command
from django.db import connection, connections

from benchmarks.events import receivers
from benchmarks.events.receivers import Events, Webhook
from benchmarks.failures import BenchmarkError
from tests.servers import kafka, nats, postgres
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsServer

_NAME: Final = "events"
_OBJECTS: Final = 20
_SINKS: Final = ("kafka", "nats", "webhook")
_STATES: Final = ("no sinks", "sinks up", "webhook slow", "all away")
_ROUND: Final = 300  # changes of a state in a round
_TICK: Final = os.sysconf("SC_CLK_TCK")


@contextmanager
def opened() -> Iterator["Scene"]:
    """Django uses the database from here on."""
    with (
        tempfile.TemporaryDirectory(prefix="lw-bench-events-") as folder,
        postgres.start() as database,
        kafka.start() as broker,
        nats.start() as server,
        Webhook() as webhook,
    ):
        os.environ["DJANGO_SETTINGS_MODULE"] = "lakewarden.settings"
        os.environ["LAKEWARDEN__DATABASE__URL"] = database.create_database("lakewarden_events")
        django.setup()
        call_command("migrate", interactive=False, verbosity=0)
        receivers.make_topic(broker.plain, _NAME)
        receivers.make_stream(server.url, _NAME)
        scene = Scene(broker, server, webhook, Path(folder, "workers.log"))
        try:
            yield scene
        finally:
            scene.kill(len(scene.workers))
            connections.close_all()
            webhook.shutdown()


class Scene:
    def __init__(self, broker: KafkaServer, server: NatsServer, webhook: Webhook, log: Path) -> None:
        self._kafka, self._nats, self._webhook, self._log = broker, server, webhook, log
        self.workers: list[subprocess.Popen[bytes]] = []
        self._made: Counter[str] = Counter()

    def storm(self, changes: int) -> None:
        writing = threading.Thread(target=self._change, args=(changes,))
        self._start(2)
        writing.start()
        chance, killed = random.Random(7), 0  # noqa: S311 no secret
        for away in (False, True, False):
            if away:
                self._kafka.stop()
                self._nats.stop()
            for _ in range(3):
                time.sleep(chance.uniform(1, 3))
                self.kill(1)
                self._start(1)
                killed += 1
            if away:
                self._kafka.start()
                self._nats.start()
        writing.join()
        self._until_delivered()
        print(f"\n{changes} changes, {killed} relays killed, both brokers away once\n")
        print("| sink | distinct events | more than once | in order per object |\n|---|---|---|---|")
        for name, events in self._received().items():
            print(f"| {name} | {len({each['id'] for each in events})} | {_repeated(events)} | {_in_order(events)} |")

    def speed(self, changes: int) -> None:
        """Of one worker, each sink alone: how long it takes for what waits in the outbox."""
        print("\n| sink | events per second | per second of processor time |\n|---|---|---|")
        for name in _SINKS:
            self.kill(len(self.workers))
            self._change(changes)
            self._start(1, only=name)
            self._until(lambda name=name: self._is_served(name), "the worker")  # type: ignore[misc]
            began, used = time.monotonic(), self._processor_s()
            before = self._sent(name)
            self._until(lambda name=name: self._is_reached(name), "the last event")  # type: ignore[misc]
            sent = self._sent(name) - before
            print(f"| {name} | {sent / (time.monotonic() - began):.0f} | {sent / (self._processor_s() - used):.0f} |")

    def latency(self, rounds: int) -> None:
        taken: dict[str, list[float]] = {state: [] for state in _STATES}
        for _ in range(rounds):
            for state in _STATES:
                self.kill(len(self.workers))
                self._webhook.delay_s = 0.05 if state == "webhook slow" else 0.0
                self._webhook.is_away = state == "all away"
                if state == "all away":
                    self._kafka.stop()
                    self._nats.stop()
                self._start(1, only="" if state != "no sinks" else None)
                self._until(lambda state=state: self._is_working(state), "the worker")  # type: ignore[misc]
                taken[state] += self._change(_ROUND)
                if state == "all away":
                    self._kafka.start()
                    self._nats.start()
        print("\n| sinks | p50 (ms) | p99 (ms) | changes |\n|---|---|---|---|")
        for state, seconds in taken.items():
            cuts = statistics.quantiles(seconds, n=100)
            print(f"| {state} | {cuts[49] * 1000:.2f} | {cuts[98] * 1000:.2f} | {len(seconds)} |")

    def size(self) -> None:
        events, stored = self._row(
            "select (select count(*) from event_log), (select sum(pg_total_relation_size(inhrelid)) from pg_inherits "
            "where inhparent = 'event_log'::regclass)"
        )
        (outbox,) = self._row("select pg_total_relation_size('outbox_event')")
        each = float(stored) / max(events, 1)
        print(f"\n{events} events in the log take {float(stored) / 1e6:.1f} MB, {each:.0f} bytes each; ", end="")
        print(f"the outbox takes {outbox / 1e6:.1f} MB")

    def kill(self, count: int) -> None:
        for _ in range(count):
            oldest = self.workers.pop(0)
            oldest.kill()
            oldest.wait(20)

    def _start(self, count: int, *, only: str | None = "") -> None:
        """Serving one sink; empty: all of them; None: none."""
        environment = {**os.environ, **self._settings(only), "LAKEWARDEN__EVENTS__LEASE_S": "3"}
        for _ in range(count):
            with self._log.open("ab") as log:
                command = [sys.executable, "-m", "lakewarden.cli", "work"]
                self.workers.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    def _settings(self, only: str | None) -> Mapping[str, str]:
        sinks = {
            "kafka": {"BOOTSTRAP_SERVERS": self._kafka.plain, "TOPIC": _NAME, "TIMEOUT_S": "3"},
            "nats": {"SERVERS": self._nats.url, "STREAM": _NAME, "SUBJECT": _NAME, "TIMEOUT_S": "3"},
            "webhook": {"URL": self._webhook.url, "SECRET": "s" * 32, "ALLOW_PRIVATE_ADDRESSES": "true"},
        }
        chosen = {} if only is None else {only: sinks[only]} if only else sinks
        prefix = "LAKEWARDEN__EVENTS__SINKS"
        return {
            **{f"{prefix}__{sink}__FROM_OLDEST": "true" for sink in chosen},
            **{
                f"{prefix}__{sink}__{sink}__{key}": value
                for sink, keys in chosen.items()
                for key, value in keys.items()
            },
        }

    def _change(self, count: int) -> list[float]:
        """How long each took, in seconds."""
        from tests.integration.events.events import change  # noqa: PLC0415 Django must be set up

        taken: list[float] = []
        for number in range(count):
            name = f"t{number % _OBJECTS}"
            began = time.perf_counter()
            change(name, self._made[name])
            taken.append(time.perf_counter() - began)
            self._made[name] += 1
        if threading.current_thread() is not threading.main_thread():
            connections.close_all()
        return taken

    def _received(self) -> dict[str, Events]:
        return {
            "Kafka": receivers.of_kafka(self._kafka.plain, _NAME),
            "NATS": receivers.of_nats(self._nats.url, _NAME),
            "webhook": list(self._webhook.events),
        }

    def _until_delivered(self) -> None:
        self._until(lambda: all(map(self._is_reached, _SINKS)), "the last event")

    def _is_reached(self, sink: str) -> bool:
        delivered, end, waiting = self._row(
            "select (select delivered from event_sink where name = %s), (select max(position) from event_log), "
            "(select exists (select 1 from outbox_event))",
            sink,
        )
        return not waiting and delivered == end

    def _is_working(self, state: str) -> bool:
        (waits,) = self._row("select exists (select 1 from outbox_event)")
        return not waits if state == "no sinks" else self._is_served("webhook")

    def _is_served(self, sink: str) -> bool:
        (holder,) = self._row("select (select leased_by from event_sink where name = %s)", sink)
        return any(f"/{each.pid}/" in str(holder) for each in self.workers)

    def _sent(self, sink: str) -> int:
        (sent,) = self._row("select sent from event_sink where name = %s", sink)
        return int(sent)

    def _processor_s(self) -> float:
        """The workers' own time and that of the system for them."""
        stats = [Path(f"/proc/{each.pid}/stat").read_text().rpartition(")")[2].split() for each in self.workers]
        return sum(int(each[11]) + int(each[12]) for each in stats) / _TICK

    def _row(self, query: str, *parameters: str) -> tuple[float, ...]:
        with connection.cursor() as cursor:
            cursor.execute(query, parameters)
            return tuple(cursor.fetchone())

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 600
        while not condition():
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{what} did not come: {self._log.read_text()[-2000:]}")
            time.sleep(0.05)


def _repeated(events: Events) -> int:
    return len(events) - len({each["id"] for each in events})


def _in_order(events: Events) -> str:
    first: dict[str, dict[str, object]] = {}
    for each in events:
        first.setdefault(each["id"], each)
    versions: dict[str, list[int]] = {}
    for each in first.values():
        versions.setdefault(str(each["objectid"]), []).append(each["data"]["version"])  # type: ignore[index]
    return "yes" if all(found == sorted(found) for found in versions.values()) else "NO"
