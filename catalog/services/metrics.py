"""Keeps the scan and commit reports that engines send."""

from catalog.iceberg import wire
from catalog.models import MetricsReport, Tabular
from lakewarden.authz.interface import Granted
from lakewarden.errors import BadRequest


def keep(granted: Granted[Tabular], report_type: str, body: bytes) -> None:
    """Store one report as it came; raises BadRequest for what the database cannot keep."""
    wire.check_text(body, "Invalid metrics report: it")
    if b"\\u0000" in body:
        raise BadRequest("Invalid metrics report: the character U+0000 cannot be kept")
    MetricsReport.objects.create(
        tabular=granted.target,
        actor=granted.context.actor.id,
        report_type=report_type,
        report=wire.value(body, "Invalid metrics report: it"),
    )
