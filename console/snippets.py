"""Settings for engines to copy: what this server knows is filled in, the rest are placeholders."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Snippet:
    title: str
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Connection:
    """`base_uri` has no trailing slash; `table` is a quoted name for SQL, such as `nyc.flights`."""

    base_uri: str
    warehouse: str = "<warehouse>"
    token_endpoint: str = "<token endpoint of your identity provider>"  # noqa: S105 a placeholder
    table: str = "<namespace>.<table>"


def snippets(connection: Connection) -> list[Snippet]:
    """For Spark and PyIceberg, and a first request."""
    return [_filled(each, connection) for each in (_SPARK, _PYICEBERG, _CURL)]


def all_snippets(connection: Connection) -> list[Snippet]:
    """For all engines that the documents name."""
    return [_filled(each, connection) for each in (_SPARK, _TRINO, _PYICEBERG, _DUCKDB, _FLINK, _STARROCKS, _CURL)]


def _filled(snippet: Snippet, connection: Connection) -> Snippet:
    values = {
        "[uri]": f"{connection.base_uri}/catalog",
        "[base_uri]": connection.base_uri,
        "[warehouse]": connection.warehouse,
        "[token_endpoint]": connection.token_endpoint,
        "[table]": connection.table,
    }
    text = snippet.text
    for name, value in values.items():
        text = text.replace(name, value)
    return replace(snippet, text=text)


_SPARK = Snippet(
    "Spark",
    "spark-defaults.conf",
    """\
spark.sql.extensions                       org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions
spark.sql.catalog.lake                     org.apache.iceberg.spark.SparkCatalog
spark.sql.catalog.lake.type                rest
spark.sql.catalog.lake.uri                 [uri]
spark.sql.catalog.lake.warehouse           [warehouse]
spark.sql.catalog.lake.rest.auth.type      oauth2
spark.sql.catalog.lake.oauth2-server-uri   [token_endpoint]
spark.sql.catalog.lake.credential          <client id>:<client secret>
spark.sql.catalog.lake.scope               <scope>
""",
)

_TRINO = Snippet(
    "Trino",
    "etc/catalog/lake.properties",
    """\
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri=[uri]
iceberg.rest-catalog.warehouse=[warehouse]
iceberg.rest-catalog.security=OAUTH2
iceberg.rest-catalog.oauth2.server-uri=[token_endpoint]
iceberg.rest-catalog.oauth2.credential=<client id>:<client secret>
iceberg.rest-catalog.oauth2.scope=<scope>
iceberg.rest-catalog.nested-namespace-enabled=true
""",
)

_PYICEBERG = Snippet(
    "PyIceberg",
    "~/.pyiceberg.yaml",
    """\
catalog:
  lake:
    type: rest
    uri: [uri]
    warehouse: [warehouse]
    oauth2-server-uri: [token_endpoint]
    credential: <client id>:<client secret>
    scope: <scope>
""",
)

_DUCKDB = Snippet(
    "DuckDB",
    "SQL",
    """\
INSTALL iceberg; LOAD iceberg;
CREATE SECRET lake (TYPE iceberg, CLIENT_ID '<client id>', CLIENT_SECRET '<client secret>',
  OAUTH2_SERVER_URI '[token_endpoint]', OAUTH2_SCOPE '<scope>');
ATTACH '[warehouse]' AS lake (TYPE iceberg, ENDPOINT '[uri]', SECRET lake);
SELECT * FROM lake.[table] LIMIT 10;
""",
)

_FLINK = Snippet(
    "Flink",
    "SQL",
    """\
CREATE CATALOG lake WITH (
  'type' = 'iceberg',
  'catalog-type' = 'rest',
  'uri' = '[uri]',
  'warehouse' = '[warehouse]',
  'rest.auth.type' = 'oauth2',
  'oauth2-server-uri' = '[token_endpoint]',
  'credential' = '<client id>:<client secret>',
  'scope' = '<scope>'
);
""",
)

_STARROCKS = Snippet(
    "StarRocks",
    "SQL",
    """\
CREATE EXTERNAL CATALOG lake PROPERTIES (
  "type" = "iceberg",
  "iceberg.catalog.type" = "rest",
  "iceberg.catalog.uri" = "[uri]",
  "iceberg.catalog.warehouse" = "[warehouse]",
  "iceberg.catalog.security" = "oauth2",
  "iceberg.catalog.oauth2.server-uri" = "[token_endpoint]",
  "iceberg.catalog.oauth2.credential" = "<client id>:<client secret>",
  "iceberg.catalog.oauth2.scope" = "<scope>"
);
""",
)

_CURL = Snippet(
    "curl",
    "shell",
    """\
curl -H "Authorization: Bearer $TOKEN" [base_uri]/management/v1/whoami
curl -H "Authorization: Bearer $TOKEN" "[base_uri]/catalog/v1/config?warehouse=[warehouse]"
""",
)
