"""The audit of the chosen project: changes, decisions and refusals, newest first, with filters."""

import csv
from datetime import datetime
from io import StringIO
from typing import Final

from django.http import HttpResponse

from console.visits import Visit, page
from lakewarden.audit import search
from lakewarden.audit.models import AuditEntry
from lakewarden.audit.search import Wanted
from lakewarden.authz.actions import ProjectAction
from lakewarden.errors import InvalidArgument
from lakewarden.paging import Page, next_token
from tenants import access

PAGE_SIZE: Final = 50
EXPORTED: Final = 5000
"""Most entries in a file."""
_COLUMNS: Final = (
    "at",
    "actor",
    "assumed_role",
    "action",
    "object_type",
    "object_id",
    "outcome",
    "reason",
    "count",
    "request_id",
)
_FORMULAS: Final = tuple("=+-@\t\r")
_LONGEST: Final = 255
_FILTERS: Final = {"actor": "User or role", "action": "Action", "object_id": "Object", "outcome": "Outcome"}


@page
def audit(visit: Visit) -> HttpResponse:
    """For whoever may read the project's audit."""
    granted = access.project(visit.context, visit.project_id, ProjectAction.READ_AUDIT)
    asked = _asked(visit)
    token = visit.query.get("pageToken")
    where = Page.parse({"pageSize": str(PAGE_SIZE)} | ({"pageToken": token} if token else {}))
    entries, last = search.of_project(granted.target.id, _wanted(asked), where)
    query = visit.request.GET.copy()
    query.pop("pageToken", None)
    own_query = query.urlencode()
    if last is not None:
        query["pageToken"] = next_token(last)
    return visit.render(
        "audit.html",
        section="audit",
        project=granted.target,
        entries=entries,
        filters=[(name, title, asked[name]) for name, title in _FILTERS.items() if name != "outcome"],
        outcome=asked["outcome"],
        outcomes=AuditEntry.Outcome.values,
        next_query=None if last is None else query.urlencode(),
        own_query=own_query,
    )


@page
def export(visit: Visit) -> HttpResponse:
    """The newest entries that match the filters, as CSV."""
    granted = access.project(visit.context, visit.project_id, ProjectAction.READ_AUDIT)
    entries, _ = search.of_project(granted.target.id, _wanted(_asked(visit)), Page(None, EXPORTED))
    written = StringIO()
    lines = csv.writer(written)
    lines.writerow(_COLUMNS)
    for each in entries:
        lines.writerow([_plain(getattr(each, name)) for name in _COLUMNS])
    response = HttpResponse(written.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="audit.csv"'
    return response


def _plain(value: object) -> str:
    """A text that no spreadsheet takes for a formula."""
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return f"'{text}" if text[:1] in _FORMULAS else text


def _asked(visit: Visit) -> dict[str, str]:
    asked = {name: visit.query.get(name, "").strip() for name in _FILTERS}
    for name, text in asked.items():
        if len(text) > _LONGEST or not text.isprintable():
            raise InvalidArgument(f"Invalid {name}: at most {_LONGEST} printable characters are expected")
    if asked["outcome"] and asked["outcome"] not in AuditEntry.Outcome.values:
        raise InvalidArgument(f"Unknown outcome {asked['outcome']!r}: {', '.join(AuditEntry.Outcome.values)} are known")
    return asked


def _wanted(asked: dict[str, str]) -> Wanted:
    return Wanted({name: text for name, text in asked.items() if text})
