"""`python -m benchmarks.pipeline`: change data through the gateway into tables; see --help."""

import argparse
import os
import sys
import time
from contextlib import ExitStack

import psycopg
from pyiceberg.catalog.rest import RestCatalog

from benchmarks.failures import BenchmarkError
from benchmarks.machine import processes
from benchmarks.machine.parts import Parts
from benchmarks.pipeline.changes import Changes
from benchmarks.pipeline.parts import Killer, database_url, log_of, part
from benchmarks.pipeline.senders import Senders
from benchmarks.pipeline.verdict import Verdict, judged
from benchmarks.stack import DevelopmentServer
from standalone.ready import ReadyInfo, read_ready_file
from standalone.signals import interrupting

ABOUT = """
Sends changes through a real gateway at a rate, lets `lakewarden pipeline` write them, and then reads every table with
PyIceberg: each event must be in its change log exactly once, and each mirror must equal a replay of the changes.
It prints freshness (from an event's timestamp to the commit of the snapshot that shows it), events per second, and
events per second of processor time of the pipeline. The exit code is 1 if anything is missing, doubled or wrong.

With --kills, so many times a random process is killed with SIGKILL at a random point of sending and flushing, which the
seed decides: one that serves, a worker, or the pipeline with its JVM. Without it, the figures are worth reading.
"""
EXAMPLES = """
python -m benchmarks.pipeline --rate 1000 --events 60000
python -m benchmarks.pipeline --rate 2000 --events 1000000 --kills 20 --seed 7
python -m benchmarks.pipeline --storage s3 --tables 10 --mode both
"""
LIFTED = {
    "MESSAGES_PER_S": 1_000_000,
    "BURST": 1_000_000,
    "CONNECTIONS_PER_S": 1000,
    "CONNECTIONS_PER_ADDRESS": 1000,
    "BUFFER_BYTES": 1 << 34,
}
PATIENCE_S = 1800.0
REPORT_S = 15.0


def main() -> int:
    options = parsed()
    os.environ.update({f"LAKEWARDEN__INGEST__{name}": str(value) for name, value in LIFTED.items()})
    try:
        with interrupting(), ExitStack() as cleaning:
            return Run(options, cleaning).run()
    except BenchmarkError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


class Run:
    def __init__(self, options: argparse.Namespace, cleaning: ExitStack) -> None:
        self.options = options
        self._said = self._began = 0.0
        self._warm = 0
        self._killer: Killer | None = None
        self.changes = Changes(options.events, options.sources, options.tables, options.rows)
        kept = cleaning.enter_context(DevelopmentServer(processes=2, storage=options.storage))
        self.ready = kept.ready
        self.info: ReadyInfo = read_ready_file(kept.ready)
        self.catalog = RestCatalog("lake", **self._login())
        self.catalog.create_namespace(self.changes.namespace, {"lakewarden.cdc.mode": options.mode})
        flushing = {
            "PIPELINE__FLUSH_AGE_S": str(options.flush_age),
            "PIPELINE__MAX_EVENTS": str(options.max_events),
            "PIPELINE__POLL_INTERVAL_S": "0.1",
            "PIPELINE__MASTER": options.master,
            "MAINTENANCE__POLICY": '{"lakewarden.maintenance.every-minutes": "1"}',
        }
        self.pipeline = part("pipeline", ("pipeline",), self.ready, self.info, flushing)
        self.worker = part("worker", ("work",), self.ready, self.info, {})
        for each in (self.pipeline, self.worker):
            cleaning.enter_context(each)
        self.database = cleaning.enter_context(psycopg.connect(database_url(self.ready), autocommit=True))

    def run(self) -> int:
        options = self.options
        self._began = time.time()
        self._warm_up()
        senders = Senders(self.info, self.changes, rate=options.rate)
        cpu = processes.cpu_ns(processes.tree(self.pipeline.pid))
        self._warm = log_of(self.database).received
        self._killer = self._found_killer() if options.kills else None
        senders.start()
        while senders.are_sending:
            time.sleep(0.5)
            self._look()
        if senders.failures:
            raise BenchmarkError(f"Sending failed: {senders.failures[0]}")
        sent_s = time.time() - senders.began
        self._await_flushed()
        took = time.time() - senders.began
        used = (processes.cpu_ns(processes.tree(self.pipeline.pid)) - cpu) / 1e9
        verdict = judged(self.catalog, self.changes, has_mirror=options.mode == "both")
        print(self._figures(verdict, sent_s=sent_s, took=took, cpu_s=None if self._killer else used))
        if self._killer is not None:
            killed = ", ".join(f"{name} {count}" for name, count in self._killer.kills.items())
            print(f"killed at random points (seed {options.seed}): {killed}")
        print(f"load average at the end: {os.getloadavg()[0]:.1f}")
        print("\n".join(verdict.problems) or "each event once, and the mirrors equal a replay")
        return 1 if verdict.problems else 0

    def _found_killer(self) -> Killer:
        supervisor = Parts.find(int(self.info.catalog_uri.split(":")[2].split("/")[0]), below=None).server
        if supervisor is None:
            raise BenchmarkError("The server's processes cannot be seen: this works on Linux only")
        above = processes.stat_of(supervisor)
        listening = [each.pid for each in processes.tree(supervisor) if each.parent == supervisor]
        root = supervisor if listening or above is None else above.parent
        parts = {"pipeline": self.pipeline, "worker": self.worker}
        return Killer(root, parts, kills=self.options.kills, seed=self.options.seed)

    def _warm_up(self) -> None:
        """Until a first change of each table is in it: Spark has started, and its code is compiled in part."""
        warm = Changes(2000, 1, 1, 10, namespace="warm")
        self.catalog.create_namespace("warm", {"lakewarden.cdc.mode": self.options.mode})
        senders = Senders(self.info, warm, rate=1e6)
        senders.start()
        while senders.are_sending:
            time.sleep(0.1)
        self._await_flushed()

    def _await_flushed(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self._look():
            if self.pipeline.exited and self._killer is None:
                raise BenchmarkError(self.pipeline.obituary(when="in the middle"))
            if time.monotonic() > deadline:
                raise BenchmarkError(f"Not all was flushed after {PATIENCE_S:.0f} s: {self.pipeline.log_tail()}")
            time.sleep(0.2)

    def _look(self) -> int:
        """Go on with the kills, say how it goes; returns how many batches wait."""
        found, now = log_of(self.database), time.time()
        if self._killer is not None:
            received = found.received - self._warm
            self._killer.look((received + received - found.buffered) / (2 * self.changes.total))
        if now - self._said > REPORT_S:
            self._said = now
            sys.stderr.write(
                f"  {now - self._began:6.0f} s: {found.received:,} events received, {found.waiting:,} batches wait\n"
            )
        return found.waiting

    def _figures(self, verdict: Verdict, *, sent_s: float, took: float, cpu_s: float | None) -> str:
        warm_up_s = min(5.0, sent_s / 4)
        ages = ", ".join(f"p{part} {verdict.percentile(part, warm_up_s=warm_up_s):.2f} s" for part in (50, 95, 99))
        cost = "" if cpu_s is None else f"; {verdict.events / cpu_s:,.0f} events a second of the pipeline's processors"
        return (
            f"{verdict.events:,} events of {self.changes.tables} tables in {took:.0f} s "
            f"({verdict.events / sent_s:,.0f} a second received), the last {took - sent_s:.0f} s of them only flushing"
            f"{cost}\n"
            f"freshness: {ages}\n"
            f"{verdict.snapshots:,} snapshots of change logs, {verdict.files:,} files now; "
            f"{verdict.rows:,} rows in mirrors"
        )

    def _login(self) -> dict[str, str]:
        info = self.info
        return {
            "uri": info.catalog_uri,
            "warehouse": info.warehouse.name,
            "credential": f"{info.engine.client_id}:{info.engine.client_secret}",
            "oauth2-server-uri": info.token_endpoint,
            "scope": info.engine.scope,
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
        }


def parsed() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks.pipeline",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    arguments.add_argument("--events", type=int, default=60_000, help="to send [60000]")
    arguments.add_argument("--rate", type=float, default=1000, help="events a second that are offered [1000]")
    arguments.add_argument("--sources", type=int, default=4, help="sockets, each a source of its own [4]")
    arguments.add_argument("--tables", type=int, default=1, help="that the events are for, in turn [1]")
    arguments.add_argument("--rows", type=int, default=1000, help="of each source in each table [1000]")
    arguments.add_argument("--mode", choices=["changelog", "both"], default="both", help="what is written [both]")
    arguments.add_argument("--flush-age", type=float, default=1.0, help="PIPELINE__FLUSH_AGE_S [1]")
    arguments.add_argument("--kills", type=int, default=0, help="of processes, at random points [0]")
    arguments.add_argument("--seed", type=int, default=7, help="of these points [7]")
    arguments.add_argument("--max-events", type=int, default=500_000, help="PIPELINE__MAX_EVENTS [500000]")
    arguments.add_argument("--storage", choices=["file", "s3"], default="file", help="of the warehouse [file]")
    arguments.add_argument("--master", default="local[*]", help="Spark's [local[*]]")
    return arguments.parse_args()


if __name__ == "__main__":
    sys.exit(main())
