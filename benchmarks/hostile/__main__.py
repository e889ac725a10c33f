"""`python -m benchmarks.hostile`: see --help."""

import argparse
import secrets
import sys
import tempfile
from dataclasses import dataclass
from http import HTTPStatus

from benchmarks.failures import BenchmarkError
from benchmarks.hostile.attacks import ATTACKS, Scene
from benchmarks.hostile.installation import attacked, installation
from benchmarks.hostile.memory import forget_peak, peak_mib
from benchmarks.hostile.others import Waits, measure
from standalone.signals import interrupting
from tests.integration.replicas.pair import SCHEMA, Lake, Pair, Person

_ABOUT = """
Hostile callers attack one of two servers on one database, with few rights. For each attack: how long others wait for
small reads, before and during it, in the same seconds (rounds are interleaved); at the attacked server and at the other
one; and the peak of the attacked server's memory. The table is Markdown.
"""
_EXAMPLES = """
examples:
  make hostile                                       every attack, some seconds each
  make hostile ARGS="--only 'made-up tokens'"        one of them
  make hostile ARGS="--rounds 5 --seconds 8"         for figures to be kept
"""
_COLUMNS = (
    "attack",
    "rights",
    "others' p50, p99, longest (ms) before",
    "during",
    "at the other server",
    "failed",
    "peak (MiB)",
)
_ALL = "all of these at once"


@dataclass(frozen=True, slots=True)
class Options:
    connections: int
    seconds: float
    rounds: int
    only: tuple[str, ...]


def main() -> int:
    options = _options()
    with (
        interrupting(),
        tempfile.TemporaryDirectory(prefix="lw-hostile-") as folder,
        installation(folder) as (pair, lake),
    ):
        scene, paths = _scene(pair, lake)
        print(f"{options.connections} hostile connections; {options.rounds} rounds of {options.seconds:g} s\n")
        print(f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}")
        names = list(options.only or ATTACKS)
        for name in names if options.only else [*names, _ALL]:
            rights = ATTACKS[name][0] if name in ATTACKS else "all of these"
            attacked = names if name == _ALL else [name]
            print(f"| {name} | {rights} | {_row(options, attacked, scene, pair, paths)} |", flush=True)
    return 0


def _row(options: Options, names: list[str], scene: Scene, pair: Pair, paths: list[str]) -> str:
    """Of a server that was started anew: what an earlier attack left in its memory is gone."""
    before, during, beside, peak = Waits(), Waits(), Waits(), 0
    token = pair.people[0].token
    pair.a.server.restart()
    server = pair.a.server.process.pid
    measure(pair.a.port, token, paths, 1)  # warm
    for _ in range(options.rounds):
        before.add(measure(pair.a.port, token, paths, options.seconds))
        forget_peak(server)
        with attacked(names, scene, options.connections):
            measure(pair.a.port, token, paths, options.seconds / 2)  # it begins
            during.add(measure(pair.a.port, token, paths, options.seconds))
            beside.add(measure(pair.b.port, token, paths, options.seconds / 2))
        peak = max(peak, peak_mib(server))
        measure(pair.a.port, token, paths, options.seconds / 2)  # what was left is done
    shown = [f"{each.at(50):.0f}, {each.at(99):.0f}, {each.at(100):.0f}" for each in (before, during, beside)]
    return " | ".join([*shown, f"{during.failed} of {len(during.ms)}", str(peak)])


def _scene(pair: Pair, lake: Lake) -> tuple[Scene, list[str]]:
    """`people`: an engine that reads, somebody without any right, and somebody who may create in one namespace."""
    engine, stranger, creator, *_ = pair.people
    lake.add_namespace("sales")
    lake.add_table("sales", "orders")
    theirs = lake.add_namespace("theirs")
    pair.a.done("POST", f"{lake.managed}/grants", {"writes": [engine.entry("select")]})
    pair.a.done("POST", f"{lake.managed}/namespace/{theirs}/grants", {"writes": [creator.entry("create")]})
    for name in ("mine", "large"):
        _done(pair, creator, lake.tables("theirs"), {"name": name, "schema": SCHEMA})
    for number in range(80):  # statistics of snapshots that are not there: 100 KB each
        blob = {"type": "x", "snapshot-id": number, "sequence-number": 1, "fields": [1]}
        blob["properties"] = {"a": secrets.token_hex(50_000)}
        statistics = {"snapshot-id": number, "statistics-path": "s3://a", "file-size-in-bytes": 1}
        statistics |= {"file-footer-size-in-bytes": 1, "blob-metadata": [blob]}
        update = {"action": "set-statistics", "snapshot-id": number, "statistics": statistics}
        _done(pair, creator, lake.tables("theirs", "large"), {"requirements": [], "updates": [update]})
    scene = Scene(pair.a.port, stranger.token, creator.token, lake.id, "theirs")
    return scene, [lake.tables("sales", "orders"), lake.path("namespaces", "sales"), lake.tables("sales"), lake.config]


def _done(pair: Pair, person: Person, path: str, body: object) -> None:
    answer = pair.a.ask(person, "POST", path, body)
    if answer.status != HTTPStatus.OK:
        raise BenchmarkError(f"POST {path} was answered with {answer.status}")


def _options() -> Options:
    parser = argparse.ArgumentParser(
        prog="make hostile", description=_ABOUT, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=64, help="hostile ones (%(default)s)")
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="before and during, one after the other (%(default)s)")
    parser.add_argument("--only", action="append", default=[], choices=list(ATTACKS), help="this attack alone")
    given = vars(parser.parse_args())
    return Options(**{**given, "only": tuple(given["only"])})


if __name__ == "__main__":
    sys.exit(main())
