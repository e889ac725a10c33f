"""The settings of an Iceberg REST catalog for engines: for sessions, the shell and the snippets."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden.errors import InvalidArgument

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class RestCatalog:
    """`credential` is `client_id:client_secret`; `uri` ends before `/v1`; `extra`: more properties."""

    name: str
    uri: str
    warehouse: str
    credential: str = field(repr=False)
    oauth2_server_uri: str
    scope: str = "catalog"
    extra: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidArgument(f"A catalog's name in SQL is of letters, digits and _, not {self.name!r}.")
        if ":" not in self.credential:
            raise InvalidArgument(f"The credential of catalog {self.name} must be client_id:client_secret.")

    def properties(self) -> dict[str, str]:
        """Iceberg's own property names, as PyIceberg's `load_catalog` and Spark's catalog settings take them."""
        return {
            "type": "rest",
            "uri": self.uri,
            "warehouse": self.warehouse,
            "credential": self.credential,
            "oauth2-server-uri": self.oauth2_server_uri,
            "scope": self.scope,
            **self.extra,
        }

    def spark_settings(self) -> dict[str, str]:
        prefix = f"spark.sql.catalog.{self.name}"
        # Iceberg's Java client would infer the type, and warn that it did.
        properties = {"rest.auth.type": "oauth2", **self.properties()}
        keyed = {f"{prefix}.{key}": value for key, value in properties.items()}
        return {prefix: "org.apache.iceberg.spark.SparkCatalog", **keyed}


def spark_settings(catalogs: Sequence[RestCatalog]) -> dict[str, str]:
    """The Spark settings for these catalogs; the first one is the default."""
    settings = {"spark.sql.extensions": EXTENSIONS}
    for catalog in catalogs:
        settings |= catalog.spark_settings()
    return settings | ({"spark.sql.defaultCatalog": catalogs[0].name} if catalogs else {})


def local_settings() -> dict[str, str]:
    """A lean Spark inside one JVM on this machine: nothing listens beyond 127.0.0.1, no UI, no Hive."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
