"""What a pipeline says of itself, as series of Prometheus and as a member of the status."""

from typing import Any, Final

from ingest.metrics import histogram, sample
from ingest.services.flushes import Pipeline

_HISTOGRAMS: Final = {
    "flush": ("lakewarden_ingest_flush_seconds", "Time in which a micro-batch was written to tables"),
    "freshness": (
        "lakewarden_ingest_freshness_seconds",
        "Time from an event's timestamp to the snapshot that shows it, estimated from quantiles of each flush",
    ),
}
_COUNTERS: Final = {
    "flushes": ("lakewarden_ingest_flushes", "Micro-batches written to tables since the pipeline's start"),
    "events": ("lakewarden_ingest_flushed_events", "Events written to tables since the pipeline's start"),
    "dataFiles": ("lakewarden_ingest_data_files", "Data files written since the pipeline's start"),
    "bytes": ("lakewarden_ingest_data_bytes", "Bytes of these files"),
    "rejectedValues": ("lakewarden_ingest_rejected_values", "Values that fitted no column since the pipeline's start"),
}


def series(pipeline: Pipeline | None) -> list[list[str]]:
    """Without a pipeline, only that there is none."""
    running = pipeline is not None and pipeline.is_running
    lines = [sample("lakewarden_ingest_pipeline_up", "gauge", "Whether the pipeline is running", int(running))]
    said: dict[str, Any] = pipeline.freshness if pipeline else {}
    lines += [
        sample(name, "counter", described, said[member])
        for member, (name, described) in _COUNTERS.items()
        if member in said
    ]
    found = said.get("histograms", {})
    for member, (name, described) in _HISTOGRAMS.items():
        if member in found:
            each = found[member]
            lines.append(histogram(name, described, each["bounds"], each["counts"], each["sum"]))
    return lines


def described(pipeline: Pipeline | None, *, shows_error: bool) -> dict[str, Any]:
    """The member `pipeline` of the status: freshness in milliseconds, counts since the pipeline's start.

    Errors name tables, which not every caller may see.
    """
    if pipeline is None:
        return {"isRunning": False}
    said = {name: value for name, value in pipeline.freshness.items() if name != "histograms"}
    shown = {"isRunning": pipeline.is_running, "state": pipeline.state, **said}
    return shown | ({"error": pipeline.error} if pipeline.error and shows_error else {})
