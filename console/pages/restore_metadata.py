"""Restores a table to an earlier metadata file: a look at what would change, then one commit once its name is typed."""

from uuid import UUID

import msgspec
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from catalog import access, tabular_types
from catalog.models import Tabular
from catalog.services import table_restoration
from console import documents
from console.documents import MAIN
from console.pages.browse import readable
from console.pages.restore import CHANGED, frame
from console.pages.tables import parsed
from console.visits import Visit, form, page
from lakewarden.authz.actions import TableAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import CommitFailed, LakewardenError, NotFound


@page
def preview(visit: Visit, *, warehouse_id: UUID, table_id: UUID) -> HttpResponse:
    """What restoring `file` would change; nothing is changed."""
    granted = readable(visit, warehouse_id, tabular_types.TABLE, table_id)
    return _shown(visit, granted, visit.query.get("file", ""))


@form
def restore(visit: Visit, *, warehouse_id: UUID, table_id: UUID) -> HttpResponse:
    """Commit the state in `file`, if the table is still as the visitor saw it."""
    asked = visit.request.POST
    granted = access.tabular_in(
        visit.context, str(warehouse_id), tabular_types.TABLE, str(table_id), TableAction.COMMIT
    )
    file, typed = asked.get("file", ""), asked.get("name", "")
    if typed != granted.target.name:
        text = "That is not the table's name, so nothing was changed"
        return _shown(visit, granted, file, typed=typed, problem=text)
    try:
        table_restoration.restore(granted, file, seen=asked.get("seen", ""))
    except CommitFailed:
        return _shown(visit, granted, file, typed=typed, problem=CHANGED)
    except LakewardenError as error:
        return _shown(visit, granted, file, typed=typed, problem=error.message)
    return HttpResponseRedirect(f"{reverse('console:table', args=[warehouse_id, table_id])}?tab=metadata")


def _shown(
    visit: Visit, granted: Granted[Tabular], file: str, *, typed: str = "", problem: str | None = None
) -> HttpResponse:
    shown: dict[str, object] = {}
    try:
        shown = _look(granted, file)
    except NotFound:
        if file:
            raise
    except LakewardenError as error:
        problem = problem or error.message
    return visit.render(
        "restore_metadata.html", **frame(visit, granted), file=file, typed=typed, problem=problem, **shown
    )


def _look(granted: Granted[Tabular], file: str) -> dict[str, object]:
    found = table_restoration.look(granted, file)
    now = parsed(found.now)
    after = now if found.after is None else msgspec.json.decode(found.after)
    return {
        "is_looked_at": True,
        "changes": found.after is not None,
        "seen": found.now.tabular.metadata_location,
        "now": documents.current_snapshot(now),
        "then": documents.current_snapshot(after),
        "differences": documents.differences(documents.current_schema(now), documents.current_schema(after)),
        "definition": documents.changed(documents.definition(now), documents.definition(after)),
        "properties": documents.changed(now.get("properties") or {}, after.get("properties") or {}),
        "expired": sorted(found.expired.items()),
        "is_expired": MAIN in found.expired,
        "removed": found.removed,
        "violations": found.violations,
    }
