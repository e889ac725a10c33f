"""`python -m standalone.issuer --port 8080 --state-dir DIR`: the issuer as a process."""

import logging
import sys
from pathlib import Path

import click

from standalone.issuer import server
from standalone.issuer.refusal import StartRefused


@click.command(help="Serve the development OIDC issuer on 127.0.0.1 until it is stopped.")
@click.option("--port", type=click.IntRange(0, 65535), required=True, help="0 takes a free port and says which.")
@click.option("--state-dir", type=click.Path(path_type=Path), required=True, help="Clients, people and keys.")
@click.option("--token-lifetime", type=click.IntRange(1, 86400), default=server.TOKEN_LIFETIME_S, show_default=True)
def main(port: int, state_dir: Path, token_lifetime: int) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s", stream=sys.stderr)
    try:
        server.run(port, state_dir, token_lifetime_s=token_lifetime)
    except StartRefused as error:
        raise click.ClickException(error.message) from error


if __name__ == "__main__":
    main()
