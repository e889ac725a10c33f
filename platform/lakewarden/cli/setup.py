"""What the commands of `lakewarden` need before they begin: configuration, Django, a database at this version."""

import logging
import os

import click

from lakewarden import config

logger = logging.getLogger(__name__)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakewarden.settings")


def configured() -> config.Config:
    try:
        return config.current()
    except config.ConfigError as error:
        raise click.ClickException(
            f"The configuration cannot be used:\n  {str(error).replace(chr(10), chr(10) + '  ')}"
        ) from None


def load_django() -> config.Config:
    """Load the configuration and Django's apps; refuses without a database address."""
    settings = configured()
    if settings.database.url is None:
        raise click.ClickException(
            "LAKEWARDEN__DATABASE__URL is not set: give it as postgresql://user:password@host:port/database, "
            "or run `lakewarden dev` for a server with everything in it"
        )
    import django

    django.setup()
    return settings


def require_current(*, waits: bool = False) -> None:
    """Raises ClickException unless the database is migrated to this version; `waits`: wait for
    it to become reachable.
    """
    from lakewarden.schema_version import DatabaseNotReady, require_current, wait_until_current

    try:
        if waits:
            wait_until_current(lambda sentence: click.echo(sentence, err=True))
        else:
            require_current()
    except DatabaseNotReady as error:
        raise click.ClickException(str(error)) from None


def tell_of_few_sessions(needed: int) -> None:
    """Log a warning if PostgreSQL allows fewer sessions: what finds none is answered 503, or waits."""
    from lakewarden.postgres import allowed_sessions
    from lakewarden.schema_version import few_sessions

    if few := few_sessions(needed):
        logger.warning("%s: %s", few, allowed_sessions.REMEDY)


def require_keys() -> None:
    """Raises ClickException unless the secrets in the database can be read with the keys of the configuration."""
    from lakewarden.schema_version import DatabaseNotReady, require_keys

    try:
        require_keys()
    except DatabaseNotReady as error:
        raise click.ClickException(str(error)) from None
