"""`python -m demo.shell READY_FILE [spark-sql's arguments]`: SQL on a running server; for `lakewarden spark-sql`."""

import sys
from pathlib import Path

from demo.connection import Connection
from lakewarden.errors import LakewardenError
from pipeline.spark.spark_sql import run


def main(arguments: list[str]) -> int:
    """Becomes the shell; returns only when that was not possible, after one sentence on stderr."""
    if not arguments:
        sys.stderr.write("Usage: python -m demo.shell READY_FILE [spark-sql's arguments]\n")
        return 2
    try:
        connection = Connection.read(Path(arguments[0]))
        run([connection.catalog], arguments=arguments[1:], progress=_say)
    except LakewardenError as error:
        sys.stderr.write(f"Error: {error.message}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
