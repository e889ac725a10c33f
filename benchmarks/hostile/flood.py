"""`python -m benchmarks.hostile.flood`: see --help."""

import argparse
import http.client
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from benchmarks.hostile.attacks import Scene
from benchmarks.hostile.installation import attacked, installation
from benchmarks.hostile.others import Waits
from standalone.signals import interrupting
from tests.integration.replicas.pair import SCHEMA, Lake, Pair, Person

_ABOUT = """
One caller floods one table with commits and loads while others commit to tables of their own, a few times a second
each. How long these wait: without a flood; with one by a caller of the same project; with one by a caller of another
project; and with the same flood at another server on the same machine and database, which shows what is due to the
processor and the database alone. The turns are interleaved. The table is Markdown.
"""
_FLOOD = ["commits to one table", "loads of one table"]
_CALM = 4
"""Connections, each of another caller with a table of its own."""
_PAUSE_S = 0.1
_WARM_S = 1.0


@dataclass(frozen=True, slots=True)
class Turn:
    name: str
    scene: Scene | None


def main() -> int:
    options = _options()
    with (
        interrupting(),
        tempfile.TemporaryDirectory(prefix="lw-flood-") as folder,
        installation(folder) as (pair, lake),
    ):
        calm = _calm(pair, lake)
        same = _flooded(pair, lake, pair.people[0])
        other = _flooded(pair, _other_project(pair), pair.people[0])
        turns = [
            Turn("none", None),
            Turn("of the same project", same),
            Turn("of another project", other),
            Turn("of the same project, at the other server", replace(same, port=pair.b.port)),
        ]
        waits = {turn.name: Waits() for turn in turns}
        commits = dict.fromkeys(waits, 0)
        for _ in range(options.rounds):
            for turn in turns:
                with _flood(turn, options.connections):
                    _measure(pair.a.port, calm, _WARM_S)
                    before = _version(pair, turn)
                    waits[turn.name].add(_measure(pair.a.port, calm, options.seconds))
                    commits[turn.name] += _version(pair, turn) - before
    print("| flood | its commits a second | calm commits | p50 ms | p99 ms | longest ms | failed |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, each in waits.items():
        told = [f"{each.at(percent):.0f}" for percent in (50, 99, 100)]
        rate = commits[name] / options.seconds / options.rounds
        print(f"| {name} | {rate:.0f} | {len(each.ms)} | {' | '.join(told)} | {each.failed} |")
    return 0


@contextmanager
def _flood(turn: Turn, connections: int) -> Iterator[None]:
    with nullcontext() if turn.scene is None else attacked(_FLOOD, turn.scene, connections):
        yield


def _version(pair: Pair, turn: Turn) -> int:
    """How often the flooded table was committed to, as the name of its metadata file says."""
    if turn.scene is None:
        return 0
    loaded = pair.b.ask(pair.people[0], "GET", turn.scene.table("mine")).json()
    return int(loaded["metadata-location"].rpartition("/")[2].partition("-")[0])


def _calm(pair: Pair, lake: Lake) -> list[tuple[str, str]]:
    """Token and table of each calm caller."""
    lake.add_namespace("calm")
    found = []
    for number in range(_CALM):
        person = pair.people[1 + number]
        table = lake.add_table("calm", f"t{number}")
        writes = {"writes": [person.entry("modify")]}
        pair.a.done("POST", f"{lake.managed}/table/{table}/grants", writes)
        found.append((person.token, lake.tables("calm", f"t{number}")))
    return found


def _flooded(pair: Pair, lake: Lake, flooder: Person) -> Scene:
    namespace = lake.add_namespace("theirs")
    writes = {"writes": [flooder.entry("create")]}
    pair.a.done("POST", f"{lake.managed}/namespace/{namespace}/grants", writes)
    made = pair.a.ask(flooder, "POST", lake.tables("theirs"), {"name": "mine", "schema": SCHEMA})
    assert made.status == http.HTTPStatus.OK, made  # noqa: S101 the benchmark's own set-up
    return Scene(pair.a.port, flooder.token, flooder.token, lake.id, "theirs")


def _other_project(pair: Pair) -> Lake:
    """A warehouse in a project of its own."""
    project = pair.a.done("POST", "/management/v1/project", {"project-name": "other"})["project-id"]
    profile = {"type": "local", "base-path": str(pair.a.server.local_root / "other")}
    body = {"warehouse-name": "other", "storage-profile": profile, "project-id": project}
    return Lake(pair, "other", pair.a.done("POST", "/management/v1/warehouse", body)["id"])


def _measure(port: int, calm: list[tuple[str, str]], seconds: float) -> Waits:
    found = [Waits() for _ in calm]
    end = time.monotonic() + seconds

    def commit(waits: Waits, token: str, path: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        number = 0
        while time.monotonic() < end:
            number += 1
            body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"n": str(number)}}]}
            begun = time.perf_counter()
            try:
                connection.request("POST", path, json.dumps(body), headers)
                answer = connection.getresponse()
                answer.read()
                waits.failed += answer.status != http.HTTPStatus.OK
            except (OSError, http.client.HTTPException):
                waits.failed += 1
                connection.close()
            waits.ms.append((time.perf_counter() - begun) * 1000)
            time.sleep(_PAUSE_S)
        connection.close()

    threads = [threading.Thread(target=commit, args=[waits, *whom]) for waits, whom in zip(found, calm, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in found[1:]:
        found[0].add(each)
    return found[0]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile.flood", description=_ABOUT)
    parser.add_argument("--connections", type=int, default=32, help="of the flood (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="of each turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="of all turns (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
