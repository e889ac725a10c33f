"""The background work of a warehouse: what runs, waits, has failed; with its attempts, and what can be done with it."""

from typing import Final
from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from console.pages.browse import crumbs
from console.visits import Visit, form, page
from lakewarden.authz.actions import WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import InvalidArgument, LakewardenError
from lakewarden.paging import Page, next_token
from lakewarden.tasks import control, listing
from lakewarden.tasks.control import Action, Verb
from lakewarden.tasks.listing import Filter, Status
from lakewarden.tasks.scope import Scope
from tenants import access
from tenants.models import Warehouse

PAGE_SIZE: Final = 50
ATTEMPTS: Final = 20
_OFFERED: Final = {
    Status.SCHEDULED: (Verb.RUN_NOW, Verb.CANCEL),
    Status.RUNNING: (Verb.STOP, Verb.CANCEL),
    Status.STOPPING: (Verb.CANCEL,),
    Status.FAILED: (Verb.RUN_NOW, Verb.CANCEL),
}
_WORDS: Final = {Verb.RUN_NOW: "Run now", Verb.CANCEL: "Cancel for ever", Verb.STOP: "Stop for now"}


@page
def listed(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """Newest first; `status` shows only those."""
    granted = access.warehouse(visit.context, warehouse_id, WarehouseAction.GET_ALL_TASKS)
    token, status = visit.query.get("pageToken"), _status(visit.query.get("status", ""))
    asked = Page.parse({"pageSize": str(PAGE_SIZE)} | ({"pageToken": token} if token else {}))
    found, last = listing.find(_scope(granted), Filter(statuses=[status] if status else None), asked)
    return visit.render(
        "tasks.html",
        section="warehouses",
        warehouse=granted.target,
        crumbs=crumbs(granted.target),
        tasks=[(each, round(each.progress * 100)) for each in found],
        statuses=list(Status),
        status=status,
        next_page=None if last is None else next_token(last),
    )


@page
def task(visit: Visit, *, warehouse_id: UUID, task_id: UUID) -> HttpResponse:
    granted = access.warehouse(visit.context, warehouse_id, WarehouseAction.GET_ALL_TASKS)
    return _shown(visit, granted, task_id)


@form
def control_one(visit: Visit, *, warehouse_id: UUID, task_id: UUID) -> HttpResponse:
    """Run it now, stop it or cancel it."""
    granted = access.warehouse(visit.context, warehouse_id, WarehouseAction.CONTROL_ALL_TASKS)
    try:
        verb = Verb(visit.request.POST.get("verb", ""))
    except ValueError:
        raise InvalidArgument(f"verb: one of {', '.join(_WORDS)} is expected") from None
    try:
        control.control(_scope(granted), [str(task_id)], Action(verb), context=visit.context)
    except LakewardenError as error:
        return _shown(visit, granted, task_id, problem=error.message)
    return HttpResponseRedirect(reverse("console:task", args=[warehouse_id, task_id]))


def _shown(visit: Visit, granted: Granted[Warehouse], task_id: UUID, *, problem: str | None = None) -> HttpResponse:
    details = listing.get(_scope(granted), str(task_id), attempts=ATTEMPTS)
    found = details.task
    return visit.render(
        "parts/task.html" if visit.is_partial else "task.html",
        section="warehouses",
        warehouse=granted.target,
        crumbs=crumbs(granted.target),
        task=found,
        percent=round(found.progress * 100),
        details=sorted((found.details or {}).items()),
        attempts=details.attempts,
        verbs=[(verb.value, _WORDS[verb]) for verb in _OFFERED.get(found.status, ())],
        may_control=granted.allows(WarehouseAction.CONTROL_ALL_TASKS),
        granters=visit.granters(granted, WarehouseAction.CONTROL_ALL_TASKS),
        is_over=found.status in {Status.SUCCESS, Status.CANCELLED, Status.FAILED},
        problem=problem,
    )


def _scope(granted: Granted[Warehouse]) -> Scope:
    return Scope(granted.target.project_id, granted.target.id)


def _status(text: str) -> Status | None:
    if not text:
        return None
    try:
        return Status(text)
    except ValueError:
        raise InvalidArgument(f"Unknown status {text[:80]!r}: {', '.join(Status)} are known") from None
