"""Keeps the scan and commit reports that engines send."""

import msgspec

from catalog.models import MetricsReport, Tabular
from lakewarden.authz.interface import Granted
from lakewarden.errors import BadRequest


def keep(granted: Granted[Tabular], report_type: str, body: bytes) -> None:
    """Store one report as it came; raises BadRequest for text that the database cannot keep."""
    if b"\\u0000" in body:
        raise BadRequest("Invalid metrics report: the character U+0000 cannot be kept")
    MetricsReport.objects.create(
        tabular=granted.target,
        actor=granted.context.actor.id,
        report_type=report_type,
        report=msgspec.json.decode(body),
    )
