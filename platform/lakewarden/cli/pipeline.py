"""`lakewarden pipeline`: runs the pipeline of change data, and shows how far it is."""

import sys

import click

from lakewarden.cli.setup import configured


@click.group(invoke_without_command=True)
@click.option("--master", metavar="URL", help="Spark's master [default: LAKEWARDEN__PIPELINE__MASTER, or local[*]].")
@click.option(
    "--warehouse",
    "warehouses",
    multiple=True,
    metavar="NAME",
    help="Write the log of this warehouse, as <name> or <project>/<name>; may be repeated [default: all with one].",
)
@click.option("--once", is_flag=True, help="Write what is in the log now, and end.")
@click.pass_context
def pipeline(context: click.Context, *, master: str | None, warehouses: tuple[str, ...], once: bool) -> None:
    """Write change data from the log into Iceberg tables, exactly once, until TERM or Ctrl-C. Needs the extra `spark`.

    It is a Spark driver, and an engine like any other: it logs in to the catalog with an OAuth2 client, gets access to
    storage from the catalog, and reads the log in the database. Set LAKEWARDEN__PIPELINE__CATALOG_URI,
    OAUTH2_SERVER_URI, CLIENT_ID and CLIENT_SECRET, and LAKEWARDEN__DATABASE__URL. `lakewarden dev --pipeline` does all
    of that to try it.

    Each table's changes go to a change log, to a mirror of the rows as they are now, or to both: see the property
    `lakewarden.cdc.mode` of tables and namespaces. What does not fit a column goes to <table>__rejected.

    It flushes at 10,000 events, 32 MiB or 60 seconds, or when somebody asks for it (POST /lakehouse/flush). Two
    pipelines may run: a warehouse belongs to one at a time, and the other one takes over.

    On one machine it needs nothing else; on a cluster, pass --master spark://host:7077, and install Lakewarden with
    the extra `spark` on its workers.

    `lakewarden pipeline status` shows how far it is.

    Exit codes: 0 after TERM or the end of --once, 1 if something must be corrected first.
    """
    if context.invoked_subcommand is not None:
        return
    settings = configured()
    import logging
    from importlib import import_module

    from lakewarden.errors import LakewardenError

    logging.basicConfig(level=settings.log.level, format="%(asctime)s %(levelname)s %(message)s")
    try:
        options = import_module("pipeline.jobs.options").Options
        run = import_module("pipeline.jobs.run").run
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed: install Lakewarden with its extra (pip install 'lakewarden[spark]')"
        ) from None
    try:
        chosen = options.parse(settings, master=master, warehouses=warehouses, once=once)
    except LakewardenError as error:
        raise click.ClickException(error.message) from None
    sys.exit(run(chosen))


@pipeline.command()
@click.option("--json", "as_json", is_flag=True, help="Print everything that is known, as JSON.")
def status(*, as_json: bool) -> None:
    """Print for each warehouse what its pipeline does, what waits, and how soon changes are seen in tables.

    It reads the database (LAKEWARDEN__DATABASE__URL), whether or not a pipeline runs. The exit code is 1 if changes
    wait for a warehouse whose pipeline does not run, or reports an error.
    """
    from importlib import import_module

    from lakewarden.errors import LakewardenError

    settings = configured()
    url = settings.pipeline.database_url or settings.database.url
    if url is None:
        raise click.ClickException("LAKEWARDEN__DATABASE__URL is not set: what pipelines say is in the database")
    shown = import_module("pipeline.sources.progress")
    try:
        rows = shown.progress(url.get_secret_value())
    except LakewardenError as error:
        raise click.ClickException(error.message) from None
    if as_json:
        click.echo(shown.as_json(rows))
    else:
        for row in rows:
            click.echo("\n".join(shown.lines(row)))
        if not rows:
            click.echo("No warehouse has received change data yet")
    sys.exit(1 if any(shown.is_stuck(row) for row in rows) else 0)
