"""Settings of `lakewarden pipeline`: where it logs in, when it flushes, how it runs Spark."""

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr

from lakewarden.config.sections import HttpUri, Names, Section


def _object(value: object) -> object:
    """Accept JSON, because environment variables have no objects, and Spark's settings have dots."""
    return json.loads(value) if isinstance(value, str) else value


class PipelineConfig(Section):
    """The pipeline is a client of the catalog: it needs an OAuth2 client that may create and write tables."""

    catalog_uri: HttpUri | None = Field(
        None,
        description="Address of the catalog for the pipeline, without `/v1`, e.g. https://lake.example.org/catalog.",
    )
    oauth2_server_uri: HttpUri | None = Field(
        None, description="Token endpoint at which the pipeline logs in with client credentials."
    )
    client_id: str | None = Field(None, description="Its OAuth2 client.")
    client_secret: SecretStr | None = Field(None, description="The secret of its OAuth2 client.")
    scope: str = Field("catalog", description="Scope that it asks for.")
    token_exchange: bool = Field(
        default=False,
        description="Whether it renews tokens by RFC 8693 instead of client credentials; Keycloak refuses that.",
    )
    delegation: Literal["vended-credentials", "remote-signing"] = Field(
        "vended-credentials", description="How it gets access to the storage of tables; it has no keys of its own."
    )
    database_url: SecretStr | None = Field(
        None,
        description="Address of the database for the pipeline, also from Spark's executors, e.g. with a role of fewer "
        "rights (see the how-to); without it, `database.url`.",
    )
    master: str = Field(
        "local[*]", description="Spark's master: `local[*]` is this machine; `spark://host:7077`, `k8s://…`, `yarn`."
    )
    spark: Annotated[dict[str, str], BeforeValidator(_object)] = Field(
        default_factory=dict,
        description='Settings of Spark, as JSON: `LAKEWARDEN__PIPELINE__SPARK=\'{"spark.executor.memory": "4g"}\'`.',
    )
    heap: str = Field(
        "2g", pattern=r"^[1-9][0-9]*[kmgKMG]$", description="Memory of the driver's JVM, as Java writes it."
    )
    cdc_mode: Literal["changelog", "mirror", "both"] = Field(
        "changelog",
        description="What becomes of the changes of tables for which neither they nor their namespaces say it "
        "(property `lakewarden.cdc.mode`).",
    )
    flush_events: int = Field(10_000, ge=1, le=100_000_000, description="Waiting events that begin a flush.")
    flush_bytes: int = Field(
        32 * 1024 * 1024, ge=1, le=2**40, description="Waiting bytes (as received) that begin a flush."
    )
    flush_age_s: float = Field(
        60, ge=0, le=86_400, description="Seconds after which a waiting batch is flushed. Readers see changes as late."
    )
    max_events: int = Field(
        500_000, ge=1, le=100_000_000, description="Most events in one micro-batch, unless a single batch has more."
    )
    max_bytes: int = Field(
        512 * 1024 * 1024, ge=1, le=2**40, description="Most bytes (as received) in one micro-batch, likewise."
    )
    rows_per_task: int = Field(
        100_000,
        ge=100,
        le=100_000_000,
        description="Rows of a table that one task of Spark writes, into one file a day.",
    )
    tables_at_once: int = Field(8, ge=1, le=256, description="Tables that are written at the same time.")
    poll_interval_s: float = Field(0.5, ge=0.05, le=60, description="Seconds between two looks at the log.")
    lease_s: float = Field(
        15,
        ge=3,
        le=3600,
        description="Seconds of silence after which another pipeline may take over a warehouse. One that cannot reach "
        "the database for half of them stops writing.",
    )
    drain_s: float = Field(
        60, ge=0, le=3600, description="Seconds that a pipeline takes at its end to flush what is waiting."
    )
    retry_max_s: float = Field(60, ge=1, le=3600, description="Longest pause before another attempt after a failure.")
    checkpoint: str | None = Field(
        None,
        description="Directory or URI for Spark's checkpoints, which all executors can write. They are not needed: "
        "where a pipeline goes on, the tables tell. Without it, a temporary directory.",
    )
    jars: Names = Field(
        (),
        description="More jars for Spark, as paths: e.g. Iceberg's bundle for Azure or Google Cloud. The one for S3 is "
        "fetched when a warehouse needs it.",
    )
    log_file: Path | None = Field(
        None, description="File for the output of Spark's JVM; without it, the output is dropped."
    )
