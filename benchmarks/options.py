"""The command line of `python -m benchmarks`."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scenarios.catalogue import scenarios

_MOST_CLIENTS = 1000
_PEERS = ("nessie", "reference")


@dataclass(frozen=True, slots=True)
class Options:
    scenario: str
    clients: tuple[int, ...]
    seconds: float
    rounds: int
    ready_file: Path | None
    uri: str | None
    warehouse: str | None
    token: str | None
    server_pid: int | None
    postgres_pid: int | None
    json: Path | None
    yardstick: bool
    pin: bool
    processes: int
    storage: str
    restart: bool
    analyse: bool
    beside: Path | None
    setting: tuple[str, ...]
    peers: tuple[str, ...]


def parse(arguments: list[str] | None = None) -> Options:
    """Ends the process with a usage message for what cannot be meant."""
    parser = _parser()
    given = Options(**vars(parser.parse_args(arguments)))
    if given.uri is not None and given.warehouse is None:
        parser.error("--uri needs --warehouse: the name that a client would configure")
    if given.uri is not None and given.ready_file is not None:
        parser.error("--uri and --ready-file both name a server: give one of them")
    if given.json is not None and not given.json.absolute().parent.is_dir():
        parser.error(f"--json {given.json}: its directory does not exist")
    is_outside = given.uri is not None or given.ready_file is not None
    if is_outside and (given.processes != 1 or given.restart or given.storage != "file"):
        parser.error(
            "--processes, --storage and --restart belong to a server that this program starts: not to --uri, "
            "--ready-file"
        )
    if given.uri is None and (given.warehouse or given.token or given.server_pid or given.postgres_pid):
        parser.error("--warehouse, --token, --server-pid and --postgres-pid belong to --uri")
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Measures an Iceberg REST catalog: requests per second, latency, and the CPU that server and Postgres\n"
            "spend on a request. Every client is one connection that asks again as soon as it is answered.\n"
            "Without --uri or --ready-file it starts `lakewarden dev` on a temporary directory, and beside it the\n"
            "yardstick: a minimal native server on the same database (needs cargo), in rounds taken in turn.\n"
            "Servers, Postgres and the clients share all cores, as they are deployed; --pin sets one core apart."
        ),
        epilog=_epilog(),
    )
    run = parser.add_argument_group("what to run")
    run.add_argument("--scenario", default="*", metavar="NAMES", help="names or patterns, e.g. load-*,config [all]")
    run.add_argument("--clients", type=_clients, default=(1, 8, 32), metavar="N,N", help="connections [1,8,32]")
    run.add_argument("--seconds", type=_positive, default=2.0, help="length of a round [2]")
    run.add_argument("--rounds", type=_count, default=3, help="rounds whose medians are reported [3]")
    run.add_argument("--no-yardstick", dest="yardstick", action="store_false", help="do not compare")
    run.add_argument("--pin", action="store_true", help="give the server a core of its own")
    run.add_argument("--restart", action="store_true", help="start servers and databases again before each round")
    run.add_argument("--analyse", action="store_true", help="give Postgres fresh statistics before each scenario")
    server = parser.add_argument_group("which server")
    server.add_argument("--processes", type=_count, default=1, metavar="N", help="of each server that is started [1]")
    server.add_argument(
        "--storage",
        choices=("file", "s3"),
        default="file",
        help="where its warehouse is: a directory, or a bucket of a server that is started, too [file]",
    )
    server.add_argument(
        "--beside", type=Path, metavar="DIR", help="another working copy: its server is measured in turn, as `before`"
    )
    server.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="LAKEWARDEN__* of one more server of this code, which is measured in turn, as `with settings`",
    )
    server.add_argument(
        "--peers", type=_names, default=(), metavar="NAMES", help=f"measure {' and '.join(_PEERS)} in turn with ours"
    )
    server.add_argument("--ready-file", type=Path, metavar="FILE", help="a running `lakewarden dev`")
    server.add_argument("--uri", help="any other server: the catalog's address without /v1, http:// only")
    server.add_argument("--warehouse", metavar="NAME", help="its warehouse, as clients configure it")
    server.add_argument("--token", metavar="TEXT", help="a bearer token for it, if it wants one")
    server.add_argument(
        "--server-pid", type=int, metavar="PID", help="its process, if it is not who listens on the port"
    )
    server.add_argument("--postgres-pid", type=int, metavar="PID", help="its Postgres, measured apart")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured here")
    return parser


def _epilog() -> str:
    every = scenarios()
    width = max(len(each.name) for each in every)
    listed = "\n".join(f"  {each.name:{width}}  {each.about}" for each in every)
    return (
        f"scenarios:\n{listed}\n\n"
        "columns:\n"
        "  requests/s              good answers, median of the rounds, with the least and the most in brackets\n"
        "  subject                 requests per second of the first server over those of this row\n"
        "  server µs, postgres µs  CPU (user and system) of the process tree, per request, median of the rounds\n"
        "  ratio                   server µs over the yardstick's in the same scenario; its row stands below\n"
        "  queries                 statements that the server sent to Postgres per request + BEGIN, COMMIT and the\n"
        "                          like; counted in Postgres's statement log during half a second of its own\n"
        "  errors                  answers that were no success, and connections lost\n\n"
        "examples:\n"
        "  python -m benchmarks --scenario 'load-small,head' --clients 8,32 --seconds 1\n"
        "  python -m benchmarks --scenario 'commit-*' --processes 2 --restart --beside ../before\n"
        "  python -m benchmarks --ready-file lake.json --json before.json\n"
        "  python -m benchmarks --uri http://127.0.0.1:8181/catalog --warehouse demo --token $TOKEN\n"
    )


def _clients(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(","))
    if not all(0 < number <= _MOST_CLIENTS for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r}: numbers from 1 to {_MOST_CLIENTS} are expected, e.g. 1,8,32")
    return numbers


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if name not in _PEERS:
            raise argparse.ArgumentTypeError(f"{name!r} is not a peer: {', '.join(_PEERS)}")
    return names


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r}: more than 0 seconds are expected")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 1 is expected")
    return value
