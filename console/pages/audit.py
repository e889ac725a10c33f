"""The audit of the chosen project: changes, decisions and refusals, newest first, with filters."""

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
_LONGEST: Final = 255
_FILTERS: Final = {"actor": "User or role", "action": "Action", "object_id": "Object", "outcome": "Outcome"}


@page
def audit(visit: Visit) -> HttpResponse:
    """For whoever may read the project's audit."""
    granted = access.project(visit.context, visit.project_id, ProjectAction.READ_AUDIT)
    asked = {name: visit.query.get(name, "").strip() for name in _FILTERS}
    for name, text in asked.items():
        if len(text) > _LONGEST or not text.isprintable():
            raise InvalidArgument(f"Invalid {name}: at most {_LONGEST} printable characters are expected")
    if asked["outcome"] and asked["outcome"] not in AuditEntry.Outcome.values:
        raise InvalidArgument(f"Unknown outcome {asked['outcome']!r}: {', '.join(AuditEntry.Outcome.values)} are known")
    token = visit.query.get("pageToken")
    wanted = Wanted({name: text for name, text in asked.items() if text})
    where = Page.parse({"pageSize": str(PAGE_SIZE)} | ({"pageToken": token} if token else {}))
    entries, last = search.of_project(granted.target.id, wanted, where)
    query = visit.request.GET.copy()
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
    )
