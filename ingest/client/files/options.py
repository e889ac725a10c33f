"""What the options of `lakewarden ingest send` mean together: the target, the credentials, the reader of lines."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from ingest.client.files.debezium import Debezium
from ingest.client.files.formats import Events, Reader, Rows
from ingest.client.tokens import ClientCredentials, FixedToken, TokenSource
from lakewarden.errors import InvalidArgument

SECRET_VARIABLE = "LAKEWARDEN_INGEST_CLIENT_SECRET"  # noqa: S105  a variable's name
TOKEN_VARIABLE = "LAKEWARDEN_INGEST_TOKEN"  # noqa: S105  a variable's name
FORMATS = ("events", "rows", "debezium")


@dataclass(frozen=True, slots=True)
class Target:
    """The gateway's address, the warehouse (None: its default one), and what to log in with."""

    address: str
    warehouse: str | None
    token: TokenSource


@dataclass(frozen=True, slots=True)
class Login:
    """The options that say where to send and who sends; what is left out comes from the ready file."""

    url: str | None
    warehouse: str | None
    token_endpoint: str | None
    client_id: str | None
    scope: str | None
    ready_file: Path

    def target(self, environment: Mapping[str, str] = os.environ) -> Target:
        if self.url is None:
            return self._of_ready_file()
        if token := environment.get(TOKEN_VARIABLE):
            return Target(self.url, self.warehouse, FixedToken(token))
        if self.token_endpoint is None or self.client_id is None:
            raise InvalidArgument(
                f"--url needs credentials: --token-endpoint and --client-id with the secret in {SECRET_VARIABLE}, or "
                f"an access token in {TOKEN_VARIABLE}."
            )
        if not (secret := environment.get(SECRET_VARIABLE)):
            raise InvalidArgument(f"The environment variable {SECRET_VARIABLE} with the client's secret is not set.")
        token_source = ClientCredentials(self.token_endpoint, self.client_id, secret, self.scope or "catalog")
        return Target(self.url, self.warehouse, token_source)

    def _of_ready_file(self) -> Target:
        try:
            ready: dict[str, Any] = json.loads(self.ready_file.read_bytes())
            engine, base = ready["engine"], str(ready["catalog_uri"]).removesuffix("/catalog")
            token = ClientCredentials(
                str(ready["token_endpoint"]), engine["client_id"], engine["client_secret"], engine["scope"]
            )
            return Target(f"{base}/lakehouse", self.warehouse or str(ready["warehouse"]["name"]), token)
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidArgument(
                f"There is no gateway to send to: give --url, or start `lakewarden dev`, which writes "
                f"{self.ready_file}, or name its file with --ready-file."
            ) from None


@dataclass(frozen=True, slots=True)
class Meaning:
    """The options that say what lines mean."""

    format: str
    table: str | None
    key: Sequence[str]
    skips_truncates: bool

    def __post_init__(self) -> None:
        if self.format == "rows" and not (self.table and self.key):
            raise InvalidArgument("--format rows needs --table NAME and --key COLUMN: a row names neither.")
        if self.skips_truncates and self.format != "debezium":
            raise InvalidArgument("--skip-truncates belongs to --format debezium.")

    def reader(self, base: int) -> Reader:
        make: Mapping[str, Callable[[], Reader]] = {
            "events": lambda: Events(self.table, self.key, base),
            "rows": lambda: Rows(self.table or "", self.key, base),
            "debezium": lambda: Debezium(self.table, self.key, base, self.skips_truncates),
        }
        return make[self.format]()

    def kept(self) -> dict[str, str]:
        """What must stay the same when a file is sent on."""
        return {"format": self.format, "table": self.table or "", "key": ",".join(self.key)}


def new_source(path: Path) -> str:
    """A name for a file's source that no other run uses."""
    stem = "".join(each if each.isascii() and (each.isalnum() or each in "-_.") else "-" for each in path.name)
    return f"{stem[:60]}-{uuid4().hex[:12]}"
