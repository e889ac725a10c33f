"""Where the demo's job finds its server: read from the ready file that `lakewarden dev` and `demo` write."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakewarden.errors import BadRequest
from pipeline.spark.catalogs import RestCatalog

CATALOG_NAME = "lake"


@dataclass(frozen=True, slots=True)
class Engine:
    """An OAuth2 client of the client credentials grant."""

    client_id: str
    client_secret: str = field(repr=False)
    scope: str


@dataclass(frozen=True, slots=True)
class Warehouse:
    id: str
    name: str
    location: str


@dataclass(frozen=True, slots=True)
class Connection:
    """A server, one of its warehouses, and a client with an engine's privileges."""

    catalog_uri: str
    token_endpoint: str
    engine: Engine
    warehouse: Warehouse
    console_uri: str | None = None
    management_uri: str | None = None

    @classmethod
    def parse(cls, ready: Mapping[str, Any]) -> "Connection":
        """Parse the JSON object of a ready file; unknown fields are ignored. Raises BadRequest."""
        try:
            return cls(
                catalog_uri=ready["catalog_uri"],
                token_endpoint=ready["token_endpoint"],
                engine=Engine(**_fields(ready["engine"], "client_id", "client_secret", "scope")),
                warehouse=Warehouse(**_fields(ready["warehouse"], "id", "name", "location")),
                console_uri=ready.get("console_uri"),
                management_uri=ready.get("management_uri"),
            )
        except KeyError as error:
            raise BadRequest(f"The ready file has no field {error}; `lakewarden dev` writes it.") from error

    @classmethod
    def read(cls, ready_file: Path) -> "Connection":
        """Raises `BadRequest` for a file that is missing or is not the JSON of a ready file."""
        try:
            ready = json.loads(ready_file.read_text(encoding="utf-8"))
        except OSError as error:
            raise BadRequest(f"The ready file {ready_file} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise BadRequest(f"The ready file {ready_file} is not JSON: {error}.") from error
        if not isinstance(ready, dict):
            raise BadRequest(f"The ready file {ready_file} must hold a JSON object.")
        return cls.parse(ready)

    @property
    def catalog(self) -> RestCatalog:
        return RestCatalog(
            name=CATALOG_NAME,
            uri=self.catalog_uri,
            warehouse=self.warehouse.name,
            credential=f"{self.engine.client_id}:{self.engine.client_secret}",
            oauth2_server_uri=self.token_endpoint,
            scope=self.engine.scope,
        )


def _fields(part: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: part[name] for name in names}
