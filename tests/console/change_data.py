"""Change data for the pages that show it, sent through the gateway."""

import json
import os
import subprocess

from standalone.commands import lakewarden_command
from tests.servers.lakewarden_server import DevServer


def send(server: DevServer, *numbers: int, table: str = "sales.tills", source: str = "tills") -> None:
    """Change data, by the command that ships with the product."""
    info = server.info
    rows = "".join(json.dumps({"id": each}) + "\n" for each in numbers)
    options = ["--format", "rows", "--table", table, "--key", "id", "--source", source]
    where = ["--url", info.catalog_uri.replace("/catalog", "/lakehouse"), "--warehouse", info.warehouse.name]
    done = subprocess.run(
        lakewarden_command("ingest", "send", "-", *options, *where),
        input=rows,
        env={**os.environ, "LAKEWARDEN_INGEST_TOKEN": server.token(info.engine)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
