"""Settings of metrics for Prometheus."""

from pydantic import Field

from lakewarden.config.sections import Section


class MetricsConfig(Section):
    """A port of their own, which needs no token: reach it from the monitoring only."""

    port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="Port on which `lakewarden serve` answers `/metrics` for Prometheus; without it, nothing is "
        "measured. It asks for no token.",
    )
    worker_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="The same for `lakewarden work`, whose metrics are of the database: tasks, events, change data.",
    )
    host: str = Field("127.0.0.1", description="Address of these ports.")
