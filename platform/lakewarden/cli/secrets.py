"""`lakewarden secrets`: the keys, the places and the state of the credentials of warehouses."""

import sys
from datetime import UTC, datetime
from typing import Final

import click

from lakewarden.cli.setup import load_django, require_current
from lakewarden.config import SecretsConfig
from lakewarden.postgres import limits

_STATEMENT_S: Final = 60.0
"""All statements of these commands are about few rows: a database that does not answer must not keep them waiting."""


@click.group()
def secrets() -> None:
    """Maintain the store of secrets, which keeps the credentials of warehouses."""


@secrets.command("new-key")
@click.option(
    "--id", "key_id", metavar="ID", help="Name of the key, stored with each secret that it encrypts [default: today]."
)
def new_key(*, key_id: str | None) -> None:
    """Print a new random key for LAKEWARDEN__SECRETS__KEYS or the file LAKEWARDEN__SECRETS__KEYS_FILE.

    Nothing is stored: keep the key where you keep the database's password, and a copy of it apart from the database's
    backups.
    """
    from lakewarden.config import secrets as keys

    try:
        click.echo(keys.new_key(key_id or datetime.now(UTC).date().isoformat()))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--id") from None


@secrets.command()
def rotate() -> None:
    """Encrypt all secrets in the database with the first of the configured keys.

    To replace a key: print a new one (`lakewarden secrets new-key`); add it BEHIND the old one on all servers and
    workers and restart them, so that all can read it; move it to the FRONT and restart them again; run this command;
    then remove the old key.

    Servers may keep running. It may be stopped and repeated at any time: what is done is not done again. The exit code
    is 1 if a secret could not be decrypted; the old key must stay then.
    """
    _prepare()
    from lakewarden import backends
    from lakewarden.database import interruptible
    from lakewarden.errors import Unavailable
    from lakewarden.secrets import rotation
    from lakewarden.secrets.interface import SecretError

    try:
        with interruptible():
            ring = backends.key_ring()
            wanted, done, unreadable = rotation.left(ring), 0, 0
            for batch in rotation.rotate(ring):
                done, unreadable = done + batch.rotated, unreadable + len(batch.unreadable)
                for sentence in batch.unreadable:
                    click.echo(sentence, err=True)
                click.echo(f"{done} of {wanted} secrets are encrypted with the key {ring.writing!r}", err=True)
            remaining = rotation.left(ring)
    except (SecretError, Unavailable) as error:
        raise click.ClickException(str(error)) from None
    if remaining:
        raise click.ClickException(
            f"{remaining} secrets are still encrypted with another key, {unreadable} of them cannot be decrypted: keep "
            "the old keys, and run this command again"
        )
    click.echo(
        f"All secrets are encrypted with the key {ring.writing!r}: other keys are needed only for backups made before"
    )


@secrets.command()
@click.option("--to", type=click.Choice(["database", "vault"]), required=True, help="Where the secrets shall be.")
def move(*, to: str) -> None:
    """Move the credentials of all warehouses from Vault to the database, or the other way round.

    First configure both places (LAKEWARDEN__SECRETS__KEYS and LAKEWARDEN__SECRETS__VAULT__...) and set
    LAKEWARDEN__SECRETS__BACKEND to the new one, on all servers and workers, and restart them: they find the secrets in
    either place, and keep new ones in the new place. After this command the settings of the old place can be removed.

    Servers may keep running. It may be stopped and repeated at any time.
    """
    settings = _prepare()
    from lakewarden.database import interruptible
    from lakewarden.errors import LakewardenError
    from lakewarden.secrets.interface import SecretError
    from tenants.services import secret_moves

    if settings.vault.url is None:
        raise click.ClickException("LAKEWARDEN__SECRETS__VAULT__URL is not set: both places must be configured")
    if settings.in_vault != (to == "vault"):
        raise click.ClickException(
            f"New secrets are still kept in the other place: set LAKEWARDEN__SECRETS__BACKEND={to} on all servers and "
            "workers, restart them, and run this command again"
        )
    moved = unread = 0
    try:
        with interruptible():
            wanted = secret_moves.left(to_vault=settings.in_vault)
            for each in secret_moves.move(to_vault=settings.in_vault):
                if each is None:
                    moved += 1
                    if moved % 100 == 0:
                        click.echo(f"{moved} of {wanted} credentials are moved", err=True)
                else:
                    unread += 1
                    click.echo(each, err=True)
    except (SecretError, LakewardenError) as error:
        raise click.ClickException(f"{error}; {moved} credentials were moved: run it again") from None
    click.echo(f"{moved} credentials moved to {to}, {unread} could not be read")
    sys.exit(1 if unread else 0)


@secrets.command("forget-lost")
@click.option("--remove", is_flag=True, help="Delete them; without this option they are only listed.")
def forget_lost(*, remove: bool) -> None:
    """Find the secrets in the database that no configured key can read, because keys were lost.

    A server does not start while there is one. If its key is found nowhere, not in any backup of the configuration
    either: delete these secrets, start the servers, and set the credential of each warehouse that `lakewarden secrets
    check` names. Nothing can bring a deleted one back.
    """
    _prepare()
    from lakewarden import backends
    from lakewarden.database import interruptible
    from lakewarden.errors import Unavailable
    from lakewarden.secrets.interface import SecretError

    found = 0
    try:
        with interruptible():
            if remove:
                _ = backends.key_ring().writing  # without any key, it is the configuration that is wrong
            store = backends.secrets_in_database()
            for reference, reason in store.unreadable():
                found += 1
                click.echo(reason, err=True)
                if remove:
                    store.delete(reference)
    except (SecretError, Unavailable) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{found} secrets that cannot be read {'were deleted' if remove else 'were found'}")


@secrets.command()
def check() -> None:
    """Put, read and delete a secret, and read the credentials of all warehouses; nothing of them is shown.

    The exit code is 1 if something could not be done.
    """
    settings = _prepare()
    from lakewarden.database import interruptible
    from lakewarden.errors import Unavailable
    from lakewarden.secrets.interface import SecretError
    from tenants.services import secret_moves

    try:
        with interruptible():
            secret_moves.try_out()
            click.echo(f"Secrets can be kept in {settings.backend}")
            found = list(secret_moves.unread())
            waiting = secret_moves.left(to_vault=settings.in_vault) if settings.vault.url else 0
    except (SecretError, Unavailable) as error:
        raise click.ClickException(str(error)) from None
    problems = [each for each in found if each is not None]
    for each in problems:
        click.echo(each, err=True)
    click.echo(f"The credentials of {len(found) - len(problems)} of {len(found)} warehouses can be read")
    if waiting:
        click.echo(f"{waiting} of them are in the other place: run `lakewarden secrets move --to {settings.backend}`")
    sys.exit(1 if problems else 0)


def _prepare() -> SecretsConfig:
    settings = load_django().secrets
    limits.choose(limits.of_work().at_most(_STATEMENT_S))
    require_current()
    return settings
