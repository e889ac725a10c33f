"""`lakewarden dev` with the stand-in for every command that it starts; PostgreSQL is the real one."""

import argparse
import sys
from pathlib import Path

from standalone.dev import run
from standalone.options import DevOptions
from standalone.stack import DevelopmentStack

STAND_IN = Path(__file__).with_name("stand_in_lakewarden.py")


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(STAND_IN), *arguments]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--ready-file", type=Path, required=True)
    parser.add_argument("--port", type=int)
    parser.add_argument("--warehouse", default="file")
    given = parser.parse_args()
    options = DevOptions(given.data_dir, port=given.port, ready_file=given.ready_file, warehouse=given.warehouse)
    return run(options, make=lambda options: DevelopmentStack(options, command=command))


if __name__ == "__main__":
    sys.exit(main())
