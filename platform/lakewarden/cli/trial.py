"""Commands for trying out and testing: a complete server on one machine, its issuer, and Spark."""

import sys
from collections.abc import Callable
from pathlib import Path

import click

from lakewarden.cli.setup import configured


@click.command()
@click.option("--port", type=int, required=True, help="Port on 127.0.0.1.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    required=True,
    help="Directory for clients, users and the signing key.",
)
def issuer(*, port: int, state_dir: Path) -> None:
    """Run the OIDC issuer for development. Requires LAKEWARDEN__MODE=development."""
    from standalone.issuer.refusal import StartRefused
    from standalone.issuer.server import run

    try:
        run(port, state_dir, mode=configured().mode)
    except StartRefused as error:
        raise click.ClickException(error.message) from None


_stack_options = [
    click.option(
        "--port",
        type=click.IntRange(1, 65535),
        help="Port of the server [default: that of the last run, or a free one].",
    ),
    click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(".lakewarden"),
        show_default=True,
        help="Directory for the database, the warehouse, credentials and logs.",
    ),
]


def _with_stack_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_stack_options):
        command = option(command)
    return command


@click.command()
@_with_stack_options
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to which addresses and credentials are written as JSON when the server is ready [default: ready.json in "
    "the data directory].",
)
@click.option(
    "--warehouse", default="file", show_default=True, metavar="KIND", help="Storage of the warehouse: file, or s3."
)
@click.option(
    "--s3-endpoint",
    metavar="URL",
    help="With --warehouse s3: a store that is running, with its keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
    "[default: start a server: `minio` or `versitygw` on the PATH, else MinIO, built with Go once].",
)
@click.option("--s3-bucket", default="lakewarden", show_default=True, help="Its bucket, made if it is not there.")
@click.option("--s3-region", default="us-east-1", show_default=True, help="Its region.")
@click.option(
    "--pipeline", is_flag=True, help="Run the pipeline of change data, too. Needs the extra `spark`, and Java."
)
def dev(
    *,
    port: int | None,
    data_dir: Path,
    ready_file: Path | None,
    warehouse: str,
    s3_endpoint: str | None,
    s3_bucket: str,
    s3_region: str,
    pipeline: bool,
) -> None:
    """Run a complete server on this machine, with everything it needs, until TERM or Ctrl-C.

    It starts PostgreSQL, an OIDC issuer, the server and a worker, all of which are installed with Lakewarden, and
    creates a warehouse, an administrator and credentials for an engine. For trying and testing, not for production.
    """
    from standalone.dev import run
    from standalone.options import DevOptions
    from standalone.s3.options import S3Options

    s3 = S3Options(endpoint=s3_endpoint, bucket=s3_bucket, region=s3_region)
    options = DevOptions(
        data_dir=data_dir, port=port, ready_file=ready_file, warehouse=warehouse, s3=s3, pipeline=pipeline
    )
    sys.exit(run(options))


@click.command()
@_with_stack_options
@click.option("--exit", "exit_after", is_flag=True, help="Exit when the job is done, instead of running until Ctrl-C.")
@click.option(
    "--result",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to which row counts and sums are written as JSON.",
)
def demo(*, port: int | None, data_dir: Path, exit_after: bool, result: Path | None) -> None:
    """Run `dev` and a Spark job that loads a year of real flights into Iceberg tables and changes them."""
    from standalone.demo import run
    from standalone.options import DevOptions

    sys.exit(run(DevOptions(data_dir=data_dir, port=port), exit_after=exit_after, result=result))


@click.command("spark-sql", context_settings={"ignore_unknown_options": True})
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path(".lakewarden/ready.json"),
    show_default=True,
    help="The ready file that `lakewarden dev` or `demo` wrote.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def spark_sql(*, ready_file: Path, arguments: tuple[str, ...]) -> None:
    """Open Spark's SQL shell on the warehouse of a running `dev` or `demo`. Java need not be installed.

    ARGUMENTS are passed to spark-sql unchanged, e.g. -e "SHOW NAMESPACES".
    """
    from standalone.demo import shell

    sys.exit(shell(ready_file, arguments))
