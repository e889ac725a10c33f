"""The checks before a warehouse is created or its storage changed; dry runs return them as a report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any
from uuid import UUID

from lakewarden import backends, config
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from lakewarden.errors import AlreadyExists, BadRequest, Forbidden, InvalidArgument, Unavailable
from lakewarden.names import check_name, match_key
from lakewarden.secrets.interface import SecretError
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.places import overlap
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.profiles import parse_profile
from tenants.access import is_server_administrator
from tenants.models import Project, Warehouse
from tenants.models.format_policy import FormatVersionPolicy
from tenants.models.warehouse import SELF_MANAGED
from tenants.services import left_locations, storage_trial
from tenants.services.validation_report import CheckName, Report

MANAGED_BY = (SELF_MANAGED, "instance-admin")
_ONLY_UPDATES = "only for warehouses that exist"
_ONLY_CREATION = "only for new warehouses"
_NOT_REACHED = "the profile or its location was refused, so nothing was tried there"


@dataclass(frozen=True, slots=True)
class StorageSpec:
    """The storage profile and credential of a request, not checked yet; `kept`: refers to the present credential."""

    profile: Mapping[str, Any]
    credential: Mapping[str, Any] | None = field(default=None, repr=False)
    kept: UUID | None = None


@dataclass(frozen=True, slots=True)
class ParsedStorage:
    """A profile and its credential; `kept` refers to the credential if it is the present one."""

    profile: StorageProfile
    credential: StorageCredential | None
    kept: UUID | None = None


@dataclass(frozen=True, slots=True)
class WarehouseSpec:
    """The warehouse of a create request, not checked yet; None: not given."""

    name: str
    storage: StorageSpec
    allowed_format_versions: list[int] | None = None
    default_format_version: int | None = None
    managed_by: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The report, and the parsed parts of the request (None: invalid)."""

    report: Report
    storage: ParsedStorage | None
    policy: FormatVersionPolicy | None = None
    left: frozenset[str] = frozenset()
    """Locations that other warehouses left and that this one may overlap, see `left_locations`."""


def of_creation(granted: Granted[Project], spec: WarehouseSpec, *, dry: bool) -> Plan:
    """Run all checks of a creation; `dry` leaves nothing in the storage, not even the warehouse's folder."""
    report = Report()
    storage = report.run(CheckName.PROFILE_WELL_FORMED, lambda: _parsed(spec.storage))
    report.skip(_ONLY_UPDATES, CheckName.PROFILE_COMPATIBLE)
    report.run(CheckName.WAREHOUSE_NAME_VALID, lambda: check_free(granted.target, spec.name))
    left = _check_location(report, storage, granted.context, but=None)
    report.skip(_ONLY_UPDATES, CheckName.SPEC_MUTABLE)
    policy = report.run(
        CheckName.FORMAT_VERSION_POLICY_CONSISTENT,
        lambda: FormatVersionPolicy.parse(spec.allowed_format_versions, spec.default_format_version),
    )
    report.run(CheckName.MANAGED_BY_ALLOWED, lambda: check_managed_by(granted.context, spec.managed_by))
    _try_storage(report, storage, dry=dry)
    return Plan(report, storage, policy, left)


def of_storage(granted: Granted[Warehouse], spec: StorageSpec, *, is_movable: bool, dry: bool) -> Plan:
    """Run all checks of a change of storage; `is_movable`: the warehouse has no namespaces, so
    its location may change.
    """
    warehouse = granted.target
    report = Report()
    storage = report.run(CheckName.PROFILE_WELL_FORMED, lambda: _parsed(spec))
    if storage is None:
        report.skip("the profile is not well-formed", CheckName.PROFILE_COMPATIBLE)
    else:
        new = storage.profile
        report.run(
            CheckName.PROFILE_COMPATIBLE, lambda: _check_compatible(warehouse.profile, new, is_movable=is_movable)
        )
    report.skip(_ONLY_CREATION, CheckName.WAREHOUSE_NAME_VALID)
    if report.has_failed(CheckName.PROFILE_COMPATIBLE):
        report.skip("the profile is not compatible", CheckName.LOCATION_EXCLUSIVE)
        left: frozenset[str] = frozenset()
    else:
        left = _check_location(report, storage, granted.context, but=warehouse.id)
    report.run(CheckName.SPEC_MUTABLE, lambda: check_spec_mutable(warehouse, granted.context))
    report.skip(_ONLY_CREATION, CheckName.FORMAT_VERSION_POLICY_CONSISTENT, CheckName.MANAGED_BY_ALLOWED)
    _try_storage(report, storage, dry=dry)
    return Plan(report, storage, left=left)


def check_free(project: Project, name: str) -> None:
    """Raises InvalidArgument for an invalid name, AlreadyExists if another warehouse of the project has it."""
    check_warehouse_name(name)
    if Warehouse.objects.filter(project=project, name_key=match_key(name)).exists():
        raise AlreadyExists(f"A warehouse with the name {name!r} exists already in this project")


def check_warehouse_name(name: str) -> None:
    check_name(name, what="warehouse")
    if "/" in name:
        raise InvalidArgument(f"Invalid warehouse name {name!r}: it must not contain '/'")


def check_managed_by(context: RequestContext, managed_by: str | None) -> None:
    """Raises BadRequest for an unknown value, Forbidden if only administrators of the server may set it."""
    if managed_by is not None and managed_by not in MANAGED_BY:
        raise BadRequest(f"managed-by: {managed_by[:80]!r} is not known; it is one of {', '.join(MANAGED_BY)}")
    if managed_by not in {None, SELF_MANAGED} and not is_server_administrator(context):
        raise Forbidden(f"Not allowed: managed-by {managed_by!r} is set by administrators of the server only")


def check_spec_mutable(warehouse: Warehouse, context: RequestContext) -> None:
    """Raises Forbidden if `managed-by` reserves changes to administrators of the server and the caller is not one."""
    if warehouse.managed_by != SELF_MANAGED and not is_server_administrator(context):
        raise Forbidden(
            f"Not allowed: the warehouse {warehouse.name!r} is managed by {warehouse.managed_by}: "
            "only administrators of the server may change it"
        )


def ensure_exclusive(profile: StorageProfile, *, but: UUID | None) -> None:
    """Raises AlreadyExists if the location equals, contains or is inside that of another warehouse of the server.

    The message does not name the other warehouse: it may belong to another project.
    """
    others = Warehouse.objects.all() if but is None else Warehouse.objects.exclude(id=but)
    for other in map(parse_profile, others.values_list("storage_profile", flat=True)):
        # the paths as written are compared, too, not only the real ones: the other side may change a link later
        pairs = product(_names(profile), _names(other))
        if any(overlap(one, two) for one, two in pairs):
            raise AlreadyExists(
                f"The location {profile.location} overlaps that of another warehouse: each needs a location of its own"
            )


def _names(profile: StorageProfile) -> set[str]:
    """The location as written and with symbolic links resolved."""
    return {profile.location, profile.real_location}


def _parsed(spec: StorageSpec) -> ParsedStorage:
    profile = parse_profile(spec.profile)
    settings = config.current().storage
    given = _kept_credential(spec.kept) if spec.credential is None and spec.kept else spec.credential
    try:
        credential = profile.parse_credential(given)
    except BadRequest as error:
        if spec.credential is None:  # the message is about values that the caller has not sent
            raise BadRequest(
                f"storage-credential: the present one does not fit a profile of the type {profile.type!r}: send another"
            ) from None
        raise BadRequest(error.message) from None
    profile.ensure_credential(credential, settings)
    profile.ensure_allowed(settings)
    return ParsedStorage(profile, credential, spec.kept if spec.credential is None else None)


def _kept_credential(reference: UUID) -> Mapping[str, str]:
    try:
        return backends.secrets().get(reference)
    except SecretError as error:
        raise Unavailable(f"The present credential cannot be read: {error}", retry_after_s=5) from error


def _check_compatible(before: StorageProfile, after: StorageProfile, *, is_movable: bool) -> None:
    field = before.field_moved_by(after)
    if field is not None and not is_movable:
        raise BadRequest(
            f"{field} cannot be changed from {before.dump()[field]!r} once the warehouse has namespaces, "
            "which are stored there"
        )


def _check_location(
    report: Report, storage: ParsedStorage | None, context: RequestContext, *, but: UUID | None
) -> frozenset[str]:
    if storage is None:
        report.skip("the profile is not well-formed", CheckName.LOCATION_EXCLUSIVE)
        return frozenset()

    def check() -> frozenset[str]:
        ensure_exclusive(storage.profile, but=but)
        return left_locations.check(context, storage.profile, storage.credential)

    return report.run(CheckName.LOCATION_EXCLUSIVE, check) or frozenset()


def _try_storage(report: Report, storage: ParsedStorage | None, *, dry: bool) -> None:
    """Try it as the server and as an engine, unless the location may belong to another warehouse."""
    refused = any(report.has_failed(name) for name in (CheckName.PROFILE_COMPATIBLE, CheckName.LOCATION_EXCLUSIVE))
    if storage is None or refused:
        report.skip(_NOT_REACHED, *storage_trial.CHECKS)
        return
    storage_trial.run(report, storage.profile, storage.credential, keep_folders=not dry and report.valid)
