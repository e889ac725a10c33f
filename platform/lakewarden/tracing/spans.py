"""Begins spans, decides which traces are recorded, and sends them; attributes hold no value that a caller chose."""

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from random import random
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.re import parse_env_headers
from opentelemetry.util.types import AttributeValue

from lakewarden import __version__
from lakewarden.config import TracingConfig

SPAN: Final[ContextVar[Span | None]] = ContextVar("span", default=None)
"""The span of the running code; one that records nothing carries the trace of a caller who did not sample it."""

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_HEADER: Final = "traceparent"
_LONGEST_PARENT: Final = 128
_BATCH: Final = 512
_LAST_WORDS_S: Final = 1.5


class Spans:
    """Of one process, which is a `role`: server or worker."""

    def __init__(self, settings: TracingConfig, *, role: str) -> None:
        assert settings.endpoint is not None  # noqa: S101 nobody asks for spans without
        resource = Resource.create(
            {
                "service.name": settings.service_name,
                "service.version": __version__,
                "service.instance.id": f"{socket.gethostname()}/{os.getpid()}",
                "lakewarden.role": role,
            }
        )
        exporter = OTLPSpanExporter(
            endpoint=settings.endpoint,
            certificate_file=None if settings.ca_file is None else str(settings.ca_file),
            headers=None if settings.headers is None else parse_env_headers(settings.headers.get_secret_value()),
            timeout=settings.timeout_s,
            compression=Compression.Gzip,
        )
        # which traces are recorded is decided before a span is made: that one is not costs no span
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(
            BatchSpanProcessor(
                exporter,
                max_queue_size=settings.max_waiting_spans,
                max_export_batch_size=min(_BATCH, settings.max_waiting_spans),
            )
        )
        self._tracer = self._provider.get_tracer("lakewarden", __version__)
        self._ratio = settings.sample_ratio
        self._budget = _Budget(settings.max_traces_per_s)

    def root(self, name: str, kind: SpanKind, *, parent: str | None = None) -> Span | None:
        """The first span of what this process does in a trace; `parent` is the caller's `traceparent`.

        None for a trace of our own that is not sampled. A caller's that is not is carried on, but not recorded.
        """
        given = None if parent is None else _parsed(parent)
        if given is None:
            if random() >= self._ratio or not self._budget.take():  # noqa: S311 no secret
                return None
            return self._tracer.start_span(name, Context(), kind)
        if not (given.trace_flags.sampled and self._budget.take()):
            return NonRecordingSpan(
                SpanContext(given.trace_id, given.span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.DEFAULT))
            )
        return self._tracer.start_span(name, set_span_in_context(NonRecordingSpan(given), Context()), kind)

    def child(self, of: Span, name: str, kind: SpanKind, attributes: Mapping[str, AttributeValue]) -> Span:
        return self._tracer.start_span(name, set_span_in_context(of, Context()), kind, attributes)

    def close(self) -> None:
        """Send what waits, as far as the collector takes it in time."""
        sending = threading.Thread(target=self._provider.force_flush, name="traces", daemon=True)
        sending.start()
        sending.join(_LAST_WORDS_S)


class _Budget:
    """So many in a second."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._second = 0
        self._taken = 0

    def take(self) -> bool:
        now = int(time.monotonic())
        if now != self._second:
            self._second, self._taken = now, 0
        self._taken += 1
        return self._taken <= self._most


def recorded() -> Span | None:
    """The span of the running code, if it is recorded."""
    span = SPAN.get()
    return span if span is not None and span.is_recording() else None


@contextmanager
def running(span: Span) -> Iterator[Span]:
    """Around the code whose span it is. Of an error only the type is noted: its message may hold anything."""
    token = SPAN.set(span)
    try:
        yield span
    except BaseException as error:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(StatusCode.ERROR)
        raise
    finally:
        SPAN.reset(token)
        span.end()


def outgoing(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request to another service, which goes on with the trace."""
    span, carried = SPAN.get(), dict(headers)
    if span is not None:
        _PROPAGATOR.inject(carried, set_span_in_context(span, Context()))
    return carried


def _parsed(parent: str) -> SpanContext | None:
    """None for one that is not valid."""
    if len(parent) > _LONGEST_PARENT:
        return None
    found = get_current_span(_PROPAGATOR.extract({_HEADER: parent}, Context())).get_span_context()
    return found if found.is_valid else None


def ids() -> dict[str, str]:
    """Of the running code, for the log."""
    span = SPAN.get()
    if span is None:
        return {}
    context = span.get_span_context()
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
