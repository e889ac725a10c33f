"""`python -m tests.soak`: see --help."""

import argparse
import json
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from standalone.signals import interrupting
from tests.soak.faults import KINDS
from tests.soak.run import Options, soak

_ABOUT = """
Two replicas and workers on one database are used by many clients while one fault after the other is made: processes
killed, stopped and frozen, sessions and networks cut, the disk full. Every answer is held against a ledger of what was
acknowledged; at the end the whole catalog is, with its records and its files. A few minutes by default.
"""
_EXAMPLES = """
examples:
  make soak                                                  a few minutes
  make soak ARGS="--operations 100000 --faults 500"          about an hour on two cores
  make soak ARGS="--hours 8 --seed 7"                        over night, with other faults
  make soak ARGS="--processes 2 --committers 24 --commits 100000 --faults 100"   two processes a server, mostly commits
  make soak ARGS="--only kill-worker --only cut-sessions"    some kinds alone

The report is printed, and written as text and JSON to --report. The exit code is 1 if anything was lost, doubled or
answered wrongly, or did not recover in its time. docs/how-to/soak.md says how to read it.
"""


def _options() -> tuple[Options, Path]:
    parser = argparse.ArgumentParser(
        prog="make soak", description=_ABOUT, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual = Options()
    parser.add_argument("--operations", type=int, default=usual.operations, help="check at least so many (%(default)s)")
    parser.add_argument(
        "--commits", type=int, default=usual.commits, help="acknowledge at least so many to shared tables (%(default)s)"
    )
    parser.add_argument("--faults", type=int, default=usual.faults, help="make at least so many (%(default)s)")
    parser.add_argument("--hours", type=float, default=usual.hours, help="go on at least so long (%(default)s)")
    parser.add_argument("--seed", type=int, default=usual.seed, help="order of faults and operations (%(default)s)")
    parser.add_argument("--workers", type=int, default=usual.workers, help="how many workers run (%(default)s)")
    parser.add_argument("--processes", type=int, default=usual.processes, help="of each server (%(default)s)")
    parser.add_argument(
        "--committers", type=int, default=usual.committers, help="clients that commit to shared tables (%(default)s)"
    )
    parser.add_argument(
        "--bound", type=float, default=usual.bound_s, dest="bound_s", help="longest recovery, in seconds (%(default)s)"
    )
    parser.add_argument(
        "--only", action="append", default=[], choices=[each.name for each in KINDS], help="this kind of fault alone"
    )
    parser.add_argument("--report", type=Path, default=None, help="directory of the reports and logs (a new one)")
    given = vars(parser.parse_args())
    place = given.pop("report") or Path(tempfile.gettempdir()) / f"lakewarden-soak-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    return Options(**{**given, "only": tuple(given["only"])}), place


def main() -> int:
    options, place = _options()
    place.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="lw-soak-"))
    try:
        with interrupting():
            found = soak(options, directory)
    except KeyboardInterrupt:
        return 130
    finally:
        for log in (*directory.glob("*.log"), *directory.glob("postgres/logs/*.log")):
            shutil.copy(log, place)
        shutil.rmtree(directory, ignore_errors=True)
    (place / "report.txt").write_text(found.as_text())
    (place / "report.json").write_text(json.dumps(found.as_json(), indent=1, default=str) + "\n")
    sys.stdout.write(f"{found.as_text()}Report and logs: {place}\n")
    return 0 if found.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
