"""The `lakewarden` command. Each command imports what it needs, so `--help` and usage errors respond immediately."""

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import click

from lakewarden import __version__, config
from lakewarden.cli_events import events
from lakewarden.cli_ingest import ingest
from lakewarden.cli_maintenance import maintenance
from lakewarden.cli_pipeline import pipeline
from lakewarden.cli_secrets import secrets
from lakewarden.cli_setup import configured, load_django, require_current, require_keys
from lakewarden.postgres import limits


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Lakewarden: an Apache Iceberg REST catalog with tenants and authorization.

    To try it without other software: `lakewarden dev`. To run it: set LAKEWARDEN__DATABASE__URL and
    LAKEWARDEN__OPENID__OIDC__ISSUER, then `lakewarden migrate`, `lakewarden bootstrap`, `lakewarden serve` and
    `lakewarden work`. `lakewarden doctor` says what is missing.
    """


main.add_command(events)
main.add_command(secrets)
main.add_command(ingest)
main.add_command(maintenance)
main.add_command(pipeline)


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)


@main.command()
@click.option("-v", "--verbose", is_flag=True, help="Show each migration as it runs.")
@click.option("--check", is_flag=True, help="Change nothing; the exit code is 1 if something is to be migrated.")
@click.option(
    "--wait",
    "wait_s",
    type=click.IntRange(0, 86400),
    default=0,
    metavar="SECONDS",
    help="Wait at most so long for a database that cannot be reached yet; with --check, for one that is not migrated.",
)
def migrate(*, verbose: bool, check: bool, wait_s: int) -> None:
    """Bring the database, and OpenFGA's model if it is used, to this version.

    It is safe to run it repeatedly, and on several machines at the same time.
    """
    load_django()
    limits.choose(limits.UNLIMITED)
    from lakewarden.schema_version import DatabaseNotReady, migrate_authorization, wait_for
    from lakewarden.schema_version import migrate as apply

    try:
        wait_for(lambda sentence: click.echo(sentence, err=True), migrated=check, patience_s=wait_s)
        if check:
            click.echo("The database is up to date")
            return
        done = apply(verbosity=1 if verbose else 0)
        click.echo(f"{len(done)} migrations applied" if done else "The database is up to date")
        for sentence in migrate_authorization():
            click.echo(sentence)
    except DatabaseNotReady as error:
        raise click.ClickException(str(error)) from None


@main.group()
def openfga() -> None:
    """Maintain OpenFGA, if it is the authorizer (LAKEWARDEN__AUTHORIZATION__BACKEND=openfga)."""


@openfga.command()
@click.option(
    "--dry-run", is_flag=True, help="Change nothing: only print the number of differences and the first ones."
)
def reconcile(*, dry_run: bool) -> None:
    """Make the rights in OpenFGA equal to those in the database. Servers may keep running.

    Run it once after switching to OpenFGA from another backend, and whenever OpenFGA's own data were restored from a
    backup or changed by hand.
    """
    settings = load_django()
    limits.choose(limits.of_work())
    if not settings.authorization.by_openfga:
        raise click.ClickException(
            f"The authorization backend is {settings.authorization.backend}, which does not use OpenFGA: "
            "set LAKEWARDEN__AUTHORIZATION__BACKEND=openfga"
        )
    from lakewarden.authz.openfga.reconcile import reconcile as repair
    from lakewarden.errors import Unavailable

    try:
        found = repair(settings.openfga, dry_run=dry_run)
    except Unavailable as error:
        raise click.ClickException(error.message) from None
    for line in found.lines(dry_run=dry_run):
        click.echo(line)


@main.command()
@click.option(
    "--admin", required=True, metavar="USER", help="First administrator, as <provider>~<subject>, e.g. oidc~4f1c."
)
@click.option("--admin-name", metavar="NAME", help="Name to show for the administrator until the first login.")
def bootstrap(*, admin: str, admin_name: str | None) -> None:
    """Create the default project and make USER the first administrator.

    If the server has an administrator already, nothing is changed.
    """
    load_django()
    require_current()
    from lakewarden.context import SYSTEM, Caller, PrincipalId, RequestContext
    from lakewarden.ids import new_id
    from tenants.services import servers

    provider, _, subject = admin.partition("~")
    if not (provider and subject) or provider == SYSTEM.partition("~")[0]:
        raise click.BadParameter(f"{admin!r} is not <provider>~<subject>, e.g. oidc~4f1c", param_hint="--admin")
    if servers.is_bootstrapped():
        click.echo("The server is already bootstrapped; nothing was changed")
        return
    context = RequestContext(caller=Caller(SYSTEM), request_id=str(new_id()), user_agent="lakewarden bootstrap")
    server = servers.bootstrap(Caller(PrincipalId(admin), name=admin_name), context)
    click.echo(f"Server {server.id} is ready; {admin} is its administrator")


@main.command("reopen-bootstrap")
@click.option("--yes", is_flag=True, help="Confirm: without this option nothing is changed.")
def reopen_bootstrap(*, yes: bool) -> None:
    """Let one more caller become administrator, for when all administrators have lost access.

    The next POST /management/v1/bootstrap, or `lakewarden bootstrap`, adds an administrator. Until then ANYBODY with a
    valid token can become administrator. Present administrators keep their rights. The audit records this command.
    """
    load_django()
    require_current()
    if not yes:
        raise click.ClickException(
            "Nothing was changed. This lets the next caller of POST /management/v1/bootstrap, whoever that is, become "
            "an administrator of the whole server; add --yes if that is what you want"
        )
    from lakewarden.context import SYSTEM, Caller, RequestContext
    from lakewarden.ids import new_id
    from tenants.services import servers

    context = RequestContext(caller=Caller(SYSTEM), request_id=str(new_id()), user_agent="lakewarden reopen-bootstrap")
    if not servers.reopen_bootstrap(context):
        click.echo("The server can already be bootstrapped; nothing was changed")
        return
    click.echo(
        "The next POST /management/v1/bootstrap, or `lakewarden bootstrap --admin USER`, makes another "
        "administrator: run it now, because anybody with a valid token can"
    )


@main.command()
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Number of processes [default: LAKEWARDEN__SERVER__PROCESSES, or one for each core, but no more than a "
    "quarter "
    "of LAKEWARDEN__SERVER__THREADS].",
)
def serve(*, processes: int | None) -> None:
    """Run the server (/catalog, /management, /console) until TERM, INT or HUP.

    It starts several processes, which share the port, to use all cores of the machine. The limits of threads,
    connections and memory are those of the whole server and are divided among the processes. To use 8 cores, set
    LAKEWARDEN__SERVER__THREADS to at least 32, and let PostgreSQL accept that many connections and 8 more for each
    process. A process that ends or hangs is replaced while the others keep running.

    It does not start if the database is not migrated, or holds secrets whose key is not configured.
    """
    from lakewarden.stop import Stop

    stop = Stop()
    stop.watch()
    if processes is not None:
        os.environ[f"{config.PREFIX}SERVER__PROCESSES"] = str(processes)
    settings = load_django()
    require_current(waits=True)
    require_keys()
    from lakewarden.serving.run import run

    sys.exit(run(settings, stop))


@main.command("serve-one", hidden=True)
@click.argument("listener", type=int)
@click.argument("lifeline", type=int)
@click.argument("shared", type=int)
@click.argument("processes", type=int)
@click.argument("row", type=int)
def serve_one(*, listener: int, lifeline: int, shared: int, processes: int, row: int) -> None:
    """Run one of the processes of `serve`, which starts this command with its file descriptors."""
    from lakewarden import board
    from lakewarden.stop import Stop

    stop = Stop(is_one_of_several=True)
    stop.watch()
    board.join(shared, processes=processes, row=row)
    settings = load_django()
    require_current(waits=True)
    from lakewarden.serving.run import run_one

    sys.exit(run_one(settings, stop, listener=listener, lifeline=lifeline))


@main.command()
def work() -> None:
    """Run background work (purges and other tasks) until TERM. Any number of workers may run."""
    settings = load_django()
    limits.choose(limits.of_work())
    require_current(waits=True)
    from lakewarden.tasks.worker import run

    if settings.metrics.worker_port is not None:
        from lakewarden.serving.listener import PortUnusable
        from lakewarden.serving.metrics import serve_database

        try:
            serve_database(settings.metrics.host, settings.metrics.worker_port)
        except PortUnusable as error:
            raise click.ClickException(str(error)) from None
    if settings.tracing.endpoint is None:
        sys.exit(run())
    from lakewarden.tracing.start import spans_of

    spans = spans_of(settings, role="worker")
    try:
        code = run()
    finally:
        spans.close()
    sys.exit(code)


@main.command("orphan-files")
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


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(*, as_json: bool) -> None:
    """Check everything that is configured; say what is wrong and how to correct it."""
    from lakewarden.doctor.command import main as examine

    sys.exit(examine(as_json=as_json))


@main.command()
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


@main.command()
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


@main.command()
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


@main.command("spark-sql", context_settings={"ignore_unknown_options": True})
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


if __name__ == "__main__":
    main()
