"""`python -m demo --ready-file F [--result R]`: the job against a running server. Exit code 1: said on stderr."""

import argparse
import signal
import sys
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO

from demo.connection import Connection
from demo.report import Report
from lakewarden.errors import LakewardenError


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description="Loads real data into a running Lakewarden by Spark.")
    parser.add_argument("--ready-file", type=Path, required=True, help="the JSON file of `lakewarden dev`")
    parser.add_argument("--result", type=Path, help="write what was done as JSON to this file")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    report = Report(_forgiving(sys.stdout))
    try:
        from demo.run import run  # noqa: PLC0415  pyspark takes a second to import: `--help` need not wait

        result = run(Connection.read(arguments.ready_file), report)
    except LakewardenError as error:
        sys.stderr.write(f"\nThe demo stopped: {error.message}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nThe demo was interrupted; run it again to start over.\n")
        return 130
    if arguments.result:
        result.write(arguments.result)
    return 0


def _forgiving(stream: TextIO) -> TextIO:
    """A terminal without our characters shows others in their place."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    """TERM unwinds like any exit, so that Spark is stopped in order."""
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
