"""Settings of `lakewarden pipeline`: where it logs in, when it flushes, how it runs Spark."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from lakewarden.config.sections import EngineSection, Names, Properties


class PipelineConfig(EngineSection):
    """The pipeline is a client of the catalog: it needs an OAuth2 client that may create and write tables."""

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
    spark: Properties = Field(
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
    max_tables: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Most tables in one micro-batch, unless a single batch has more. Each costs a commit, and a job of "
        "Spark unless many small ones share one; nothing of a micro-batch is noted as flushed before its last table is "
        "written.",
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
    maintenance: bool = Field(
        default=True,
        description="Whether the pipeline also maintains tables: those that it makes, and those for which a policy "
        "says so (`lakewarden.maintenance.enabled`). Without it, run `lakewarden maintenance` yourself.",
    )
    maintenance_interval_s: float = Field(
        60, ge=1, le=86_400, description="Seconds between two looks for tables whose maintenance is due."
    )
    maintenance_search_hours: float = Field(
        24,
        gt=0,
        le=8760,
        description="Hours between two looks at all tables of a warehouse, also at those that the pipeline does not "
        "write; the first one is after `maintenance_interval_s`.",
    )
    maintenance_wait_s: float = Field(
        300,
        ge=1,
        le=86_400,
        description="Seconds that a flush waits for maintenance of the same table; after that it is tried again later.",
    )
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
