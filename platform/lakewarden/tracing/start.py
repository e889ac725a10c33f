"""Begins traces in a process, once: `lakewarden serve` and `lakewarden work` call it."""

from django.conf import settings as django_settings

from lakewarden.config import Config
from lakewarden.json_log import MORE
from lakewarden.tracing.instruments import install
from lakewarden.tracing.spans import Spans, ids


def spans_of(settings: Config, *, role: str) -> Spans:
    spans = Spans(settings.tracing, role=role)
    install(
        spans,
        access=django_settings.TRACED_ACCESS,
        appends=django_settings.TRACED_APPENDS if role == "server" else None,
        by_openfga=settings.authorization.by_openfga,
    )
    MORE.append(ids)
    return spans
