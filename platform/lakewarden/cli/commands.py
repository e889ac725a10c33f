"""The `lakewarden` command. Each command imports what it needs, so `--help` and usage errors respond immediately."""

import click

from lakewarden import __version__
from lakewarden.cli.events import events
from lakewarden.cli.ingest import ingest
from lakewarden.cli.installation import bootstrap, doctor, migrate, openfga, reopen_bootstrap
from lakewarden.cli.maintenance import maintenance
from lakewarden.cli.orphan_files import orphan_files
from lakewarden.cli.pipeline import pipeline
from lakewarden.cli.secrets import secrets
from lakewarden.cli.serving import serve, serve_one, work
from lakewarden.cli.trial import demo, dev, issuer, spark_sql


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Lakewarden: an Apache Iceberg REST catalog with tenants and authorization.

    To try it without other software: `lakewarden dev`. To run it: set LAKEWARDEN__DATABASE__URL and
    LAKEWARDEN__OPENID__OIDC__ISSUER, then `lakewarden migrate`, `lakewarden bootstrap`, `lakewarden serve` and
    `lakewarden work`. `lakewarden doctor` says what is missing.
    """


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)


for _command in (
    *(migrate, openfga, bootstrap, reopen_bootstrap, doctor),
    *(serve, serve_one, work, orphan_files, events, secrets, ingest, maintenance, pipeline),
    *(issuer, dev, demo, spark_sql),
):
    main.add_command(_command)
