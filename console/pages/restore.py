"""Restores a table to an earlier snapshot: a look at what would change, then one commit that moves `main`."""

from typing import Final
from uuid import UUID

import msgspec
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from catalog import access, tabular_types
from catalog.models import Tabular
from catalog.services import pointer, tables
from catalog.services.tables import CommitTable
from console import documents
from console.documents import MAIN, SnapshotView
from console.pages.browse import crumbs, readable
from console.pages.tables import number_in, parsed
from console.visits import Visit, form, page
from lakewarden.authz.actions import TableAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import CommitFailed, InvalidArgument, LakewardenError

CHANGED: Final = (
    "The table was changed after you opened this page, so it was not restored. What you see is how it is now"
)


@page
def preview(visit: Visit, *, warehouse_id: UUID, table_id: UUID) -> HttpResponse:
    """What restoring the snapshot `a` would change; nothing is changed."""
    granted = readable(visit, warehouse_id, tabular_types.TABLE, table_id)
    return _shown(visit, granted, wanted=number_in(visit.query.get("a"), default=None))


@form
def restore(visit: Visit, *, warehouse_id: UUID, table_id: UUID) -> HttpResponse:
    """Move `main` to the snapshot, if it is still where the visitor saw it."""
    asked = visit.request.POST
    granted = access.tabular_in(
        visit.context, str(warehouse_id), tabular_types.TABLE, str(table_id), TableAction.COMMIT
    )
    wanted, seen = (number_in(asked.get(name), default=None) for name in ("snapshot", "seen"))
    if wanted is None or seen is None:
        raise InvalidArgument("snapshot and seen: ids of snapshots are expected")
    try:
        tables.commit(granted, _commit(str(granted.target.uuid), wanted, seen))
    except CommitFailed:
        return _shown(visit, granted, wanted=wanted, problem=CHANGED)
    except LakewardenError as error:
        return _shown(visit, granted, wanted=wanted, problem=error.message)
    return HttpResponseRedirect(f"{reverse('console:table', args=[warehouse_id, table_id])}?tab=snapshots")


def _commit(uuid: str, wanted: int, seen: int) -> CommitTable:
    requirements = [
        {"type": "assert-table-uuid", "uuid": uuid},
        {"type": "assert-ref-snapshot-id", "ref": MAIN, "snapshot-id": seen},
    ]
    update = {"action": "set-snapshot-ref", "ref-name": MAIN, "type": "branch", "snapshot-id": wanted}
    return CommitTable(
        requirements=[msgspec.Raw(msgspec.json.encode(each)) for each in requirements],
        updates=[msgspec.Raw(msgspec.json.encode(update))],
    )


def _shown(visit: Visit, granted: Granted[Tabular], *, wanted: int | None, problem: str | None = None) -> HttpResponse:
    metadata = parsed(pointer.load(granted))
    found = {each.id: each for each in documents.snapshots(metadata)}
    now, then = documents.current_snapshot(metadata), None if wanted is None else found.get(wanted)
    return visit.render(
        "restore.html", **frame(visit, granted), now=now, then=then, left=_left(found, now, then), problem=problem
    )


def frame(visit: Visit, granted: Granted[Tabular]) -> dict[str, object]:
    """What pages about restoring a table show around it."""
    return {
        "section": "warehouses",
        "table": granted.target,
        "address": reverse("console:table", args=[granted.target.warehouse_id, granted.target.uuid]),
        "crumbs": crumbs(granted.target.namespace.warehouse, granted.target.namespace),
        "may_restore": granted.allows(TableAction.COMMIT),
        "granters": visit.granters(granted, TableAction.COMMIT),
    }


def _left(
    found: dict[int, SnapshotView], now: SnapshotView | None, then: SnapshotView | None
) -> list[SnapshotView] | None:
    """The snapshots on the way back, whose changes are undone; None if `then` is not an ancestor."""
    left: list[SnapshotView] = []
    while now is not None and then is not None and now.id != then.id and len(left) <= len(found):
        left.append(now)
        now = found.get(now.parent_id) if now.parent_id is not None else None
    return None if now is None else left
