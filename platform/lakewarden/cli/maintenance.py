"""`lakewarden maintenance`: keeps tables small and quick, on the pipeline's Spark."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakewarden.cli.setup import configured

if TYPE_CHECKING:
    from pipeline.maintenance.command import Options


@click.group()
def maintenance() -> None:
    """Rewrite small files, manifests and position deletes, expire snapshots, remove orphan files.

    What may be done, and from when on, is in properties `lakewarden.maintenance.*` of tables and namespaces, and in
    LAKEWARDEN__MAINTENANCE__POLICY. Tables that the pipeline makes are maintained, others only where a property
    `lakewarden.maintenance.enabled` is true.

    It needs LAKEWARDEN__DATABASE__URL, Spark, and an OAuth2 client that may write the tables.
    """


_options = [
    click.option(
        "--warehouse", metavar="NAME", help="Name, `<project>/<name>` or id; not needed if there is only one."
    ),
    click.option("--table", "tables", multiple=True, metavar="NAME", help="Only `namespace.table`; may be repeated."),
    click.option(
        "--ready-file",
        type=click.Path(path_type=Path, dir_okay=False),
        default=Path(".lakewarden/ready.json"),
        show_default=True,
        help="Without settings of a client: the file that `lakewarden dev` or `demo` wrote.",
    ),
    click.option("--master", default="local[*]", show_default=True, help="Spark's master."),
]


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_options):
        command = option(command)
    return command


def _parsed(*, warehouse: str | None, tables: tuple[str, ...], ready_file: Path, master: str) -> "Options":
    from pipeline.maintenance.command import Options

    settings = configured()
    if settings.database.url is None:
        raise click.ClickException(
            "LAKEWARDEN__DATABASE__URL is not set: maintenance keeps apart from the pipeline by locks in the database"
        )
    return Options(
        settings.database.url.get_secret_value(), settings.maintenance, warehouse, ready_file, master, tables
    )


def _exit(command: Callable[[], int]) -> None:
    """The exit code is 1 if something failed."""
    from lakewarden.errors import LakewardenError

    try:
        failed = command()
    except LakewardenError as error:
        raise click.ClickException(error.message) from None
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(1 if failed else 0)


@maintenance.command()
@_with_options
def plan(*, warehouse: str | None, tables: tuple[str, ...], ready_file: Path, master: str) -> None:
    """Print what would be done and what that would gain, in files and bytes. Nothing is changed."""
    from pipeline.maintenance import command

    options = _parsed(warehouse=warehouse, tables=tables, ready_file=ready_file, master=master)
    _exit(lambda: command.plan(options, click.echo))


@maintenance.command()
@_with_options
@click.option(
    "--operation",
    "operations",
    multiple=True,
    type=click.Choice(
        [
            "rewrite-data-files",
            "rewrite-position-delete-files",
            "rewrite-manifests",
            "expire-snapshots",
            "remove-orphan-files",
        ]
    ),
    help="Only this one; may be repeated.",
)
@click.option("--now", is_flag=True, help="Do not wait for schedules; tables that --table names need not be enabled.")
def run(
    *,
    warehouse: str | None,
    tables: tuple[str, ...],
    ready_file: Path,
    master: str,
    operations: tuple[str, ...],
    now: bool,
) -> None:
    """Do what is worth doing and due, table by table, and print files and bytes before and after.

    A table to which a flush writes at the moment is left for the next time. Run it regularly, e.g. every ten minutes:
    a table's schedule decides whether anything is due.
    """
    from pipeline.maintenance import command
    from pipeline.maintenance.policy import Operation

    options = _parsed(warehouse=warehouse, tables=tables, ready_file=ready_file, master=master)
    only = [Operation(each) for each in operations]
    _exit(lambda: command.run(options, click.echo, only=only, now=now))


@maintenance.command()
@_with_options
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Lines for each table.")
def history(*, warehouse: str | None, tables: tuple[str, ...], ready_file: Path, master: str, limit: int) -> None:
    """Print what was done, newest first."""
    from pipeline.maintenance import command

    options = _parsed(warehouse=warehouse, tables=tables, ready_file=ready_file, master=master)

    def show() -> int:
        command.history(options, click.echo, limit=limit)
        return 0

    _exit(show)
