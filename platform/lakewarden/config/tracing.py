"""Settings of traces for OpenTelemetry."""

from importlib.util import find_spec
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator

from lakewarden.config.sections import HttpUri, Section


def _is_installed() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter") is not None
    except ModuleNotFoundError:  # of a package around it
        return False


class TracingConfig(Section):
    """Needs the package's extra `tracing`. Without an endpoint nothing is loaded, and nothing is measured."""

    endpoint: HttpUri | None = Field(
        None,
        description="Where traces are sent: the whole address of a collector's OTLP receiver (HTTP, protobuf), e.g. "
        "http://otel-collector:4318/v1/traces. Without it, there are no traces.",
    )
    headers: SecretStr | None = Field(
        None, description="Headers that the collector asks for, e.g. `api-key=…,tenant=lake`; values percent-encoded."
    )
    ca_file: Path | None = Field(None, description="Certificates (PEM) that the collector's certificate is checked by.")
    sample_ratio: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Part of the requests, tasks and deliveries that are traced. A caller that sends `traceparent` "
        "decides for its own requests.",
    )
    max_traces_per_s: int = Field(
        100,
        ge=1,
        le=10_000,
        description="Traces that a process begins in a second at most, whoever asks.",
    )
    max_waiting_spans: int = Field(
        2048, ge=1, le=100_000, description="Spans that wait to be sent; further ones are dropped."
    )
    timeout_s: float = Field(10, gt=0, le=60, description="Seconds for sending a batch, with all attempts.")
    service_name: str = Field("lakewarden", min_length=1, max_length=255, description="`service.name` in the traces.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.endpoint is not None and not _is_installed():
            raise ValueError(
                "tracing.endpoint is set, but OpenTelemetry's packages are missing: install lakewarden[tracing]"
            )
        return self
