"""`python -m demo.shell READY_FILE [spark-sql's arguments]`: SQL on a running server; for `lakewarden spark-sql`."""

import sys
from pathlib import Path

from demo.connection import Connection
from lakewarden.errors import LakewardenError
from pipeline.spark.jars import CATALOG_JARS
from pipeline.spark.spark_sql import run


def main(arguments: list[str]) -> int:
    """Becomes the shell; returns only when that was not possible, after one sentence on stderr."""
    if not arguments:
        sys.stderr.write("Usage: python -m demo.shell READY_FILE [spark-sql's arguments]\n")
        return 2
    try:
        connection = Connection.read(Path(arguments[0]))
        run([connection.catalog], arguments=arguments[1:], jar_names=_jars(connection), progress=_say)
    except LakewardenError as error:
        sys.stderr.write(f"Error: {error.message}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def _jars(connection: Connection) -> tuple[str, ...]:
    """A bucket needs a client of S3, which is large."""
    in_bucket = connection.warehouse.location.startswith("s3:")
    return (*CATALOG_JARS, "iceberg-aws-bundle") if in_bucket else CATALOG_JARS


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
