"""Which traces are recorded, and that nothing of OpenTelemetry is loaded where there are none."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from lakewarden import json_log
from lakewarden.config import TracingConfig
from lakewarden.tracing.instruments import _statement
from lakewarden.tracing.spans import Spans, ids, outgoing, running

NOWHERE = "http://127.0.0.1:9/v1/traces"
TRACE, CALLER = "a" * 32, "b" * 16


MADE: list[Spans] = []


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A thread that goes on asking a collector that is not there would meet the tests that come later."""
    monkeypatch.setattr("lakewarden.tracing.spans.OTLPSpanExporter", lambda **_: InMemorySpanExporter())
    yield
    while MADE:
        MADE.pop()._provider.shutdown()


def spans(**settings: float) -> Spans:
    made = Spans(TracingConfig(endpoint=NOWHERE, **settings), role="test")
    MADE.append(made)
    return made


@pytest.mark.parametrize(
    "parent",
    [
        "",
        f"00-{'0' * 32}-{CALLER}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{CALLER}-01",
        f"00-{TRACE[1:]}-{CALLER}-01",
        f"00-{TRACE}-{CALLER}-01-{'c' * 8000}",
        f"00-{TRACE}-{CALLER}-01é",
    ],
    ids=["empty", "no trace", "no span", "version", "short", "long", "not ascii"],
)
def test_a_parent_that_is_not_valid_is_as_none(parent: str) -> None:
    assert spans(sample_ratio=0).root("x", SpanKind.SERVER, parent=parent) is None
    found = spans(sample_ratio=1).root("x", SpanKind.SERVER, parent=parent)
    assert found is not None
    assert found.get_span_context().trace_id != int(TRACE, 16)


def test_a_caller_decides_and_what_is_not_sampled_is_carried_on() -> None:
    none, every = spans(sample_ratio=0), spans(sample_ratio=1)
    sampled = none.root("x", SpanKind.SERVER, parent=f"00-{TRACE}-{CALLER}-01")
    assert sampled is not None
    assert sampled.is_recording()
    unsampled = every.root("x", SpanKind.SERVER, parent=f"00-{TRACE}-{CALLER}-00")
    assert unsampled is not None
    assert not unsampled.is_recording()
    with running(unsampled):
        assert outgoing({"a": "b"}) == {"a": "b", "traceparent": f"00-{TRACE}-{CALLER}-00"}
    assert outgoing({}) == {}


def test_the_log_names_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_log, "MORE", [ids])
    record = logging.LogRecord("x", logging.INFO, "x", 1, "said", None, None)
    span = spans(sample_ratio=0).root("x", SpanKind.SERVER, parent=f"00-{TRACE}-{CALLER}-01")
    assert span is not None
    with running(span):
        entry = json.loads(json_log.JsonFormatter().format(record))
    assert entry["trace_id"] == TRACE
    assert len(entry["span_id"]) == 16
    assert "trace_id" not in json.loads(json_log.JsonFormatter().format(record))


def test_no_more_traces_begin_in_a_second_than_allowed() -> None:
    few = spans(sample_ratio=1, max_traces_per_s=3)
    begun = [few.root("x", SpanKind.SERVER, parent=f"00-{TRACE}-{CALLER}-01") for _ in range(1000)]
    assert 3 <= len([each for each in begun if each is not None and each.is_recording()]) <= 9


def test_a_statement_is_named_by_its_verb_and_table_only() -> None:
    name, attributes = _statement(b"select k.i, 'hidden' from tabular t where t.name = 'hidden'")
    assert name == "SELECT tabular"
    assert not [value for value in attributes.values() if "hidden" in str(value)]


def test_an_endpoint_is_an_address() -> None:
    with pytest.raises(ValueError, match="must be an http or https address"):
        TracingConfig(endpoint="collector:4318")


def test_without_an_endpoint_nothing_of_it_is_loaded_or_replaced() -> None:
    """The functions are the ones that were defined, so that there is nothing that could cost anything."""
    told = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True, timeout=120)
    assert told.stdout.strip() == "Application [] ask fetch execute"


_LOADED = """
import os, sys
os.environ["LAKEWARDEN__DATABASE__URL"] = "postgresql://nobody@127.0.0.1:9/none"
sys.path[:0] = ["platform", "."]
import lakewarden.asgi as asgi
import psycopg
from lakewarden.hot.coalescer import Coalescer
from lakewarden.hot.sessions import Session
loaded = [name for name in sys.modules if name.startswith(("lakewarden.tracing", "opentelemetry.sdk"))]
kept = [each for each in (Coalescer.ask, Session.fetch, psycopg.Cursor.execute) if not hasattr(each, "__wrapped__")]
print(type(asgi.application).__name__, loaded, *(each.__name__ for each in kept))
"""
