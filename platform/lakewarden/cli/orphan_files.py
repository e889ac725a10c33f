"""`lakewarden orphan-files`: metadata files that a killed server left behind."""

import json
import sys
from datetime import timedelta
from uuid import UUID

import click

from lakewarden.cli.setup import load_django, require_current
from lakewarden.postgres import limits


@click.command("orphan-files")
@click.option("--warehouse", type=click.UUID, metavar="ID", help="Search this warehouse only.")
@click.option(
    "--older-than",
    type=click.IntRange(min=1, max=1_000_000),
    default=24,
    show_default=True,
    metavar="HOURS",
    help="Leave younger files alone: their commits may be under way.",
)
@click.option("--remove", is_flag=True, help="Remove the files; without this option they are only listed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each file, each on a line.")
def orphan_files(*, warehouse: UUID | None, older_than: int, remove: bool, as_json: bool) -> None:
    """Find metadata files that a killed server left behind, which no state of their table names.

    A file is listed only if it is surely not in use: it has a name that Lakewarden gives, lies directly in the folder
    of the table's current metadata, and another file has become the version in its name, or the table has not reached
    that version. Files that have left the metadata log are left alone. Servers may keep running.

    The first file of a table or view that was never created is listed, too, if it lies alone in a folder that
    Lakewarden named in the same minute, in the folder of a namespace that is still there. Views, dropped tables, and
    data files are not searched.

    The exit code is 1 if a table or warehouse could not be searched. After the database was restored from a backup, do
    not use --remove before you have registered again what was committed after the backup.
    """
    load_django()
    limits.choose(limits.of_work())
    require_current()
    import catalog.services.orphan_files as search
    from lakewarden.errors import LakewardenError

    found = skipped = 0
    try:
        for each in search.find(older_than=timedelta(hours=older_than), warehouse_id=warehouse, remove=remove):
            if isinstance(each, search.Skipped):
                skipped += 1
                click.echo(f"{each.place} could not be searched: {each.reason}", err=True)
            else:
                found += 1
                click.echo(json.dumps(each.plain()) if as_json else each)
    except LakewardenError as error:
        raise click.ClickException(error.message) from None
    click.echo(f"{found} orphan files {'removed' if remove else 'found'}", err=as_json)
    sys.exit(1 if skipped else 0)
