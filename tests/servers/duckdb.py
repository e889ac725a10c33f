"""DuckDB in this process, with its extensions from wheels and a warehouse attached as `lake`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg

from pipeline.spark.catalogs import RestCatalog

_EXTENSIONS: Sequence[ModuleType] = (duckdb_extension_avro, duckdb_extension_httpfs, duckdb_extension_iceberg)

Row = tuple[Any, ...]


@contextmanager
def connected(catalog: RestCatalog) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that gets its own tokens by the client credentials of `catalog`."""
    client_id, _, secret = catalog.credential.partition(":")
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        for extension in _EXTENSIONS:
            (file,) = Path(str(extension.__file__)).parent.rglob("*.duckdb_extension")
            connection.execute(f"LOAD {_quoted(str(file))}")
        connection.execute(
            f"CREATE SECRET lake (TYPE iceberg, CLIENT_ID {_quoted(client_id)}, CLIENT_SECRET {_quoted(secret)}, "
            f"OAUTH2_SERVER_URI {_quoted(catalog.oauth2_server_uri)}, OAUTH2_SCOPE {_quoted(catalog.scope)})"
        )
        connection.execute(
            f"ATTACH {_quoted(catalog.warehouse)} AS {catalog.name} "
            f"(TYPE iceberg, ENDPOINT {_quoted(catalog.uri)}, SECRET lake)"
        )
        yield connection


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
