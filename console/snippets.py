"""Settings for engines to copy: this server's address is filled in, the rest are placeholders."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snippet:
    title: str
    file: str
    text: str


def snippets(base_uri: str) -> list[Snippet]:
    """Settings for Spark and PyIceberg, and a first request; `base_uri` has no trailing slash."""
    uri = f"{base_uri}/catalog"
    return [
        Snippet("Spark", "spark-defaults.conf", _SPARK.format(uri=uri)),
        Snippet("PyIceberg", "~/.pyiceberg.yaml", _PYICEBERG.format(uri=uri)),
        Snippet("curl", "shell", _CURL.format(base_uri=base_uri)),
    ]


_SPARK = """\
spark.sql.extensions                       org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions
spark.sql.catalog.lake                     org.apache.iceberg.spark.SparkCatalog
spark.sql.catalog.lake.type                rest
spark.sql.catalog.lake.uri                 {uri}
spark.sql.catalog.lake.warehouse           <warehouse>
spark.sql.catalog.lake.oauth2-server-uri   <token endpoint of your identity provider>
spark.sql.catalog.lake.credential          <client id>:<client secret>
spark.sql.catalog.lake.scope               <scope>
"""

_PYICEBERG = """\
catalog:
  lake:
    type: rest
    uri: {uri}
    warehouse: <warehouse>
    oauth2-server-uri: <token endpoint of your identity provider>
    credential: <client id>:<client secret>
    scope: <scope>
"""

_CURL = """\
curl -H "Authorization: Bearer $TOKEN" {base_uri}/management/v1/whoami
curl -H "Authorization: Bearer $TOKEN" "{base_uri}/catalog/v1/config?warehouse=<warehouse>"
"""
