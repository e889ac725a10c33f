"""The series of a pipeline."""

from typing import Any

from ingest.pipeline_series import described, series
from ingest.services.flushes import Pipeline

SAID: dict[str, Any] = {
    "p95": 1500,
    "flushes": 3,
    "events": 12_345_678,
    "histograms": {"flush": {"bounds": [1, 5], "counts": [2.0, 12_345_678.0, 0.5], "sum": 7.5}},
}
ERROR = "The table secret.t cannot be written"
PIPELINE = Pipeline(is_running=True, state="error", error=ERROR, last_flush_at=None, freshness=SAID)


def test_histograms_are_cumulative_and_exact() -> None:
    lines = [line for each in series(PIPELINE) for line in each if not line.startswith("#")]
    assert lines == [
        "lakewarden_ingest_pipeline_up 1",
        "lakewarden_ingest_flushes 3",
        "lakewarden_ingest_flushed_events 12345678",
        'lakewarden_ingest_flush_seconds_bucket{le="1"} 2',
        'lakewarden_ingest_flush_seconds_bucket{le="5"} 12345680',
        'lakewarden_ingest_flush_seconds_bucket{le="+Inf"} 12345680.5',
        "lakewarden_ingest_flush_seconds_sum 7.5",
        "lakewarden_ingest_flush_seconds_count 12345680.5",
    ]


def test_without_a_pipeline_the_series_say_so() -> None:
    assert series(None)[0][-1] == "lakewarden_ingest_pipeline_up 0"
    assert described(None, shows_error=True) == {"isRunning": False}


def test_an_error_which_may_name_tables_is_for_those_who_may_see_everything() -> None:
    assert "error" not in described(PIPELINE, shows_error=False)
    assert described(PIPELINE, shows_error=True)["error"] == ERROR
    assert "histograms" not in described(PIPELINE, shows_error=True)
