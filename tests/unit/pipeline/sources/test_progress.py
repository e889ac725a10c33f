"""The lines of `lakewarden pipeline status`."""

from typing import Any

from pipeline.sources.progress import is_stuck, lines

ROW: dict[str, Any] = {
    "warehouse": "p/demo",
    "last_position": 900,
    "flushed_position": 852,
    "buffered_batches": 48,
    "buffered_events": 4800,
    "buffered_bytes": 1_200_000,
    "instance": "host:1:ab",
    "state": "flushing",
    "error": "",
    "freshness": {
        "p50": 1200,
        "p95": 3400,
        "windowSeconds": 300.0,
        "flushes": 12,
        "events": 34_000,
        "dataFiles": 24,
        "bytes": 3_100_000,
        "rejectedValues": 1,
    },
    "last_flush": {"eventsFlushed": 300, "durationMs": 1400},
    "last_flush_at": 0.0,
    "silent_s": 0.4,
    "waiting_s": 3.2,
    "maintained": 5,
    "maintenance_failed": 0,
    "is_running": True,
}


def test_a_pipeline_at_work() -> None:
    assert list(lines(ROW | {"last_flush_at": 1_764_000_000.0})) == [
        "p/demo: flushing, on host:1:ab",
        "  written up to position 852 of 900",
        "  4,800 events in 48 batches (1.2 MB) wait, the oldest for 3 s",
        "  seen in tables after 1.2 s (median), 3.4 s (95%) in the last 5 minutes",
        "  since its start: 12 flushes, 34,000 events, 24 files, 3.1 MB, 1 values rejected",
        "  last flush: 2025-11-24 16:00:00 UTC, 300 events in 1.4 s",
        "  maintenance: 5 operations in 24 hours, 0 failed",
    ]
    assert not is_stuck(ROW)


def test_a_warehouse_without_a_pipeline_is_stuck_only_if_something_waits() -> None:
    ended = ROW | {"is_running": False, "state": "not running"}
    assert next(lines(ended)) == "p/demo: not running"
    assert is_stuck(ended)
    assert not is_stuck(ended | {"buffered_batches": 0})


def test_an_error_is_shown() -> None:
    failing = ROW | {"error": "the disk is full"}
    assert "  the disk is full" in lines(failing)
    assert is_stuck(failing)
