"""Settings of the gateway for change data."""

from typing import Literal, Self

from pydantic import Field, model_validator

from lakewarden.config.kafka import KafkaLogConfig
from lakewarden.config.sections import Section


class IngestConfig(Section):
    namespace: str = Field(
        "default", min_length=1, description="Namespace of the tables that events name without one; levels are dotted."
    )
    max_event_bytes: int = Field(1024 * 1024, ge=1024, description="Largest event, in bytes.")
    max_message_bytes: int = Field(
        4 * 1024 * 1024, ge=4096, description="Largest message on a socket and body of a request, in bytes."
    )
    max_batch_events: int = Field(1000, ge=1, le=1_000_000, description="Most events of one batch or request.")
    max_batch_tables: int = Field(100, ge=1, le=10_000, description="Most tables that the events of a batch may name.")
    known_tables: int = Field(
        20_000,
        ge=100,
        le=10_000_000,
        description="Decisions on tables that a process remembers, of all callers, about 1.1 KiB each; others that a "
        "batch names are made anew.",
    )
    window: int = Field(
        16, ge=1, le=1000, description="Batches of a connection that may wait for their answer; it is not read further."
    )
    buffer_bytes: int = Field(
        128 * 1024 * 1024,
        ge=1024,
        description="Bytes of a warehouse that may wait for the pipeline; further batches are refused (`buffer_full`).",
    )
    high_water_percent: int = Field(
        80, ge=1, le=100, description="Share of `buffer_bytes` from which batches are answered `buffered`."
    )
    contents: Literal["postgres", "kafka"] = Field(
        "postgres",
        description="Where the contents of batches wait for the pipeline: in the database, or in Kafka, to which the "
        "log in the database then refers.",
    )
    kafka: KafkaLogConfig | None = Field(
        None,
        description="The Kafka of `contents`. The pipeline needs it, too, as long as the log refers to contents there.",
    )
    fallback_folder: str | None = Field(
        None,
        description="Folder for the batches that are received while the database does not answer; it must be on a disk "
        "that outlives the server, and be the server's own. Unset: they are refused.",
    )
    fallback_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024 * 1024,
        description="Most bytes in the fallback files of a process; further batches are refused (`buffer_full`), those "
        "of a project earlier, so that there is room for others.",
    )
    fallback_refused_bytes: int = Field(
        64 * 1024 * 1024,
        ge=8 * 1024 * 1024,
        description="Most bytes of the file in which batches of a warehouse are set aside that the log does not take; "
        "when it is full, they stay in the fallback file.",
    )
    replay_patience_s: float = Field(
        10,
        ge=0.1,
        le=600,
        description="Seconds that a batch waits while earlier ones of its source are replayed from the fallback file.",
    )
    in_flight_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024 * 1024,
        description="Memory of a process, in bytes, for batches that are being stored; further ones are refused.",
    )
    connections_per_s: int = Field(
        10, ge=1, description="New sockets of a caller in a warehouse per second, at each process."
    )
    messages_per_s: int = Field(
        100, ge=1, description="Messages of one connection, and requests of one caller, per second."
    )
    burst: int = Field(50, ge=1, description="How many of them may come at once.")
    connections_per_address: int = Field(10, ge=1, description="Sockets of one address, on all servers together.")
    connections_per_source: int = Field(5, ge=1, description="Sockets of one source, on all servers together.")
    connections_per_caller: int = Field(
        500, ge=1, description="Sockets of one caller in a warehouse, on all servers together."
    )
    connections_per_warehouse: int = Field(1000, ge=1, description="Sockets of a warehouse, on all servers together.")
    connections_per_project: int = Field(
        2000, ge=1, description="Sockets of all warehouses of a project, on all servers together."
    )
    lease_s: float = Field(
        30, ge=1, le=3600, description="Seconds after which the sockets of a server that has died no longer count."
    )
    silence_s: float = Field(
        90, ge=1, le=3600, description="Seconds without a message after which a socket is closed; heartbeats count."
    )
    retry_ms: int = Field(
        1000,
        ge=1,
        le=3_600_000,
        description="Shortest `retryDelayMs` of a refused batch, in milliseconds; it doubles with each further one, "
        "with jitter, up to 64 times.",
    )
    flush_age_s: float = Field(
        60, ge=1, le=86_400, description="Age at which the pipeline flushes: `timeUntilFlush` is computed from it."
    )
    flush_timeout_s: float = Field(60, ge=0.1, le=600, description="Seconds that a request for a flush is waited for.")
    pipeline_silence_s: float = Field(
        60, ge=1, le=86_400, description="Seconds without a sign of the pipeline after which it counts as not running."
    )
    recognised_s: int = Field(
        86_400, ge=60, le=30 * 86_400, description="Seconds for which a repeated request is recognised."
    )
    max_requests: int = Field(
        5_000_000, ge=1, description="Most requests of a warehouse that are recognised; further ones are refused (429)."
    )
    max_requests_per_caller: int = Field(1_000_000, ge=1, description="Most of them that belong to one caller.")
    max_sources: int = Field(10_000, ge=1, description="Most sources of a warehouse that are remembered.")
    max_sources_per_caller: int = Field(1000, ge=1, description="Most of them that belong to one caller.")
    source_retention_days: int = Field(
        30, ge=1, le=36_500, description="Days after which a source that has sent nothing is forgotten."
    )

    @property
    def request_span_s(self) -> int:
        """Requests are counted by spans of time: so many seconds after it was full, there may be room."""
        return max(1, self.recognised_s // 24)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.contents == "kafka" and self.kafka is None:
            raise ValueError("contents is 'kafka', but kafka.bootstrap_servers is missing: set its brokers")
        return self
