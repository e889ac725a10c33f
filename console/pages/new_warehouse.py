"""Creates a warehouse, guided by the type of its storage, with the report of all checks."""

from typing import Final

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from console.storage_forms import STORAGES, credential_of, delete_profile_of, profile_of
from console.visits import Visit, form, page
from lakewarden import config
from lakewarden.authz.actions import ProjectAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import LakewardenError
from tenants import access
from tenants.models import Project
from tenants.models.delete_profile import DeleteProfile
from tenants.services import warehouse_validation, warehouses
from tenants.services.validation_report import Report
from tenants.services.warehouse_validation import StorageSpec, WarehouseSpec

_MEANINGS: Final = {
    "profile-well-formed": "The settings are complete",
    "warehouse-name-valid": "The name is free",
    "location-exclusive": "No other warehouse uses this place",
    "format-version-policy-consistent": "The format versions fit together",
    "managed-by-allowed": "You may create it",
    "storage-client-initialized": "The storage can be reached",
    "lakekeeper-read-write": "The server can write, read and delete there",
    "vended-credentials-issued": "The storage issues credentials for one table",
    "vended-credentials-read-write": "Engines can write and read with them",
    "vended-credentials-scope-enforced": "They reach nothing outside of the table",
}


@page
def new(visit: Visit) -> HttpResponse:
    """The form for one type of storage, which `type` names."""
    return _shown(visit, _granted(visit), kind=_kind(visit.query.get("type", "")), sent={})


@form
def check(visit: Visit) -> HttpResponse:
    """Run all checks and show their results; nothing is created."""
    granted, sent = _granted(visit), visit.request.POST.dict()
    kind = _kind(sent.get("type", ""))
    try:
        DeleteProfile.parse(delete_profile_of(sent))
        report = warehouse_validation.of_creation(granted, _spec(kind, sent), dry=True).report
    except LakewardenError as error:
        return _shown(visit, granted, kind=kind, sent=sent, problem=error.message)
    if visit.is_partial:
        return visit.render("parts/report.html", checks=checks_of(report), is_valid=report.valid)
    return _shown(visit, granted, kind=kind, sent=sent, report=report)


@form
def create(visit: Visit) -> HttpResponse:
    """Create it after the same checks; what was typed stays on the page if one fails, without secrets."""
    granted, sent = _granted(visit), visit.request.POST.dict()
    kind = _kind(sent.get("type", ""))
    try:
        profile = DeleteProfile.parse(delete_profile_of(sent)).dump()
        made = warehouses.create_validated(granted, _spec(kind, sent), delete_profile=profile)
    except LakewardenError as error:
        return _shown(visit, granted, kind=kind, sent=sent, problem=error.message)
    return HttpResponseRedirect(reverse("console:warehouse", args=[made.id]))


def _granted(visit: Visit) -> Granted[Project]:
    return access.project(visit.context, visit.project_id, ProjectAction.CREATE_WAREHOUSE)


def _kind(text: str) -> str:
    return text if text in STORAGES else next(iter(STORAGES))


def _spec(kind: str, sent: dict[str, str]) -> WarehouseSpec:
    storage = StorageSpec(profile_of(kind, sent), credential_of(kind, sent))
    return WarehouseSpec(name=sent.get("warehouse-name", ""), storage=storage)


def checks_of(report: Report) -> list[dict[str, object]]:
    """What a page shows of them, in words."""
    return [
        {
            "meaning": _MEANINGS.get(each.name.value, each.name.value),
            "status": each.status.value,
            "said": each.error.message if each.error else each.reason or "",
            "duration_ms": each.duration_ms,
        }
        for each in report.checks
        if each.name.value in _MEANINGS
    ]


def fields_of(kind: str, sent: dict[str, str], *, chosen: str) -> dict[str, object]:
    """What the part of a page with the storage's fields needs; it never shows a secret."""
    storage = STORAGES[kind]
    return {
        "kind": kind,
        "storage": storage,
        "fields": [(field, sent.get(field.name, "")) for field in storage.profile],
        "chosen": chosen,
        "secrets": [
            (field, "" if field.kind == "secret" else sent.get(f"credential-{field.name}", ""))
            for field in storage.credential
        ],
        "roots": [str(root) for root in config.current().storage.local_roots],
    }


def _shown(
    visit: Visit,
    granted: Granted[Project],
    *,
    kind: str,
    sent: dict[str, str],
    problem: str | None = None,
    report: Report | None = None,
) -> HttpResponse:
    if visit.is_partial and problem:
        return visit.render("parts/report.html", problem=problem)
    return visit.render(
        "new_warehouse.html",
        section="warehouses",
        project=granted.target,
        kinds=STORAGES.items(),
        **fields_of(kind, sent, chosen=sent.get("credential-type") or next(iter(STORAGES[kind].kinds), "")),
        name=sent.get("warehouse-name", ""),
        days=sent.get("days", "7"),
        problem=problem,
        checks=None if report is None else checks_of(report),
        is_valid=report is not None and report.valid,
    )
