"""Changes the storage of a warehouse by a form for its type, with the report of all checks."""

from hashlib import sha256
from uuid import UUID

import msgspec
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from catalog.services import warehouse_storage
from console.pages.browse import crumbs
from console.pages.new_warehouse import checks_of, fields_of
from console.storage_forms import STORAGES, changed_profile, credential_of, kind_of, typed_of
from console.visits import Visit, form, page
from lakewarden.authz.actions import WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import LakewardenError
from tenants import access
from tenants.models import Warehouse
from tenants.services.validation_report import Report


@page
def storage(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """The form with the present settings; the credential is never shown."""
    granted = _granted(visit, warehouse_id)
    return _shown(visit, granted, typed_of(_kind(granted.target), granted.target.storage_profile))


@form
def check(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """Run all checks and show their results; nothing is changed."""
    granted, sent = _granted(visit, warehouse_id), visit.request.POST.dict()
    try:
        report = warehouse_storage.validate(granted, *_asked(granted.target, sent))
    except LakewardenError as error:
        if visit.is_partial:
            return visit.render("parts/report.html", problem=error.message)
        return _shown(visit, granted, sent, problem=error.message)
    if visit.is_partial:
        return visit.render("parts/report.html", checks=checks_of(report), is_valid=report.valid)
    return _shown(visit, granted, sent, report=report)


@form
def change(visit: Visit, *, warehouse_id: UUID) -> HttpResponse:
    """Change it after the same checks, unless somebody else did since the page was loaded."""
    granted, sent = _granted(visit, warehouse_id), visit.request.POST.dict()
    if sent.get("seen") != _mark(granted.target):
        text = f"Somebody changed the storage after you opened this page (it is at {granted.target.location} now)"
        return _shown(visit, granted, sent, problem=f"{text}, so what you typed was not saved yet")
    try:
        warehouse_storage.update(granted, *_asked(granted.target, sent))
    except LakewardenError as error:
        return _shown(visit, granted, sent, problem=error.message)
    return HttpResponseRedirect(reverse("console:warehouse", args=[warehouse_id]))


def _granted(visit: Visit, warehouse_id: UUID) -> Granted[Warehouse]:
    return access.warehouse(visit.context, warehouse_id, WarehouseAction.UPDATE_STORAGE)


def _kind(warehouse: Warehouse) -> str:
    return kind_of(warehouse.storage_profile, warehouse.storage_credential_type)


def _asked(warehouse: Warehouse, sent: dict[str, str]) -> tuple[dict[str, object], dict[str, object] | None]:
    """Profile and credential; None keeps the present one."""
    kind = _kind(warehouse)
    profile = changed_profile(kind, warehouse.storage_profile, sent)
    return profile, credential_of(kind, sent) if sent.get("credential-type") else None


def _mark(warehouse: Warehouse) -> str:
    """What a form carries so that its sender does not overwrite what they have not seen."""
    state = [warehouse.storage_profile, str(warehouse.storage_secret)]
    return sha256(msgspec.json.encode(state, order="sorted")).hexdigest()[:32]


def _shown(
    visit: Visit,
    granted: Granted[Warehouse],
    sent: dict[str, str],
    *,
    problem: str | None = None,
    report: Report | None = None,
) -> HttpResponse:
    kind = _kind(granted.target)
    return visit.render(
        "storage.html",
        section="warehouses",
        warehouse=granted.target,
        crumbs=crumbs(granted.target),
        mark=_mark(granted.target),
        may_keep=bool(STORAGES[kind].kinds),
        **fields_of(kind, sent, chosen=sent.get("credential-type", "")),
        problem=problem,
        checks=None if report is None else checks_of(report),
        is_valid=report is not None and report.valid,
    )
