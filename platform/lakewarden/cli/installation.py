"""Commands that bring an installation to this version and into use, and that check it."""

import sys

import click

from lakewarden.cli.setup import load_django, require_current
from lakewarden.postgres import limits


@click.command()
@click.option("-v", "--verbose", is_flag=True, help="Show each migration as it runs.")
@click.option(
    "--check",
    is_flag=True,
    help="Change nothing; the exit code is 1 if something is to be migrated, or if OpenFGA, where it decides, does not "
    "answer or no longer has its store or model.",
)
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


@click.group()
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


@click.command()
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


@click.command("reopen-bootstrap")
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


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(*, as_json: bool) -> None:
    """Check everything that is configured; say what is wrong and how to correct it."""
    from lakewarden.doctor.command import main as examine

    sys.exit(examine(as_json=as_json))
