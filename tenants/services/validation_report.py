"""The report of a warehouse validation: the status of each check, for `warehouse_validation`."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from lakewarden.errors import LakewardenError

R = TypeVar("R")


class CheckName(StrEnum):
    """All checks, in the order in which they are run and reported."""

    PROFILE_WELL_FORMED = "profile-well-formed"
    PROFILE_COMPATIBLE = "profile-compatible"
    WAREHOUSE_NAME_VALID = "warehouse-name-valid"
    LOCATION_EXCLUSIVE = "location-exclusive"
    SPEC_MUTABLE = "spec-mutable"
    FORMAT_VERSION_POLICY_CONSISTENT = "format-version-policy-consistent"
    MANAGED_BY_ALLOWED = "managed-by-allowed"
    STORAGE_CLIENT_INITIALIZED = "storage-client-initialized"
    READ_WRITE = "lakekeeper-read-write"
    VENDED_CREDENTIALS_ISSUED = "vended-credentials-issued"
    VENDED_CREDENTIALS_READ_WRITE = "vended-credentials-read-write"
    VENDED_CREDENTIALS_SCOPE_ENFORCED = "vended-credentials-scope-enforced"
    CLEANUP = "cleanup"


class CheckStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Check:
    """`reason` says why it was skipped or failed; `error` is what the request would fail with
    if it were not a dry run.
    """

    name: CheckName
    status: CheckStatus
    duration_ms: int | None = None
    reason: str | None = None
    error: LakewardenError | None = None


@dataclass(slots=True)
class Report:
    checks: list[Check] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if check.status is CheckStatus.FAILED]

    def run(self, name: CheckName, check: Callable[[], R]) -> R | None:
        """Run a check, which raises LakewardenError if it fails; returns its result, or None if it failed."""
        started = time.monotonic()
        error: LakewardenError | None = None
        result: R | None = None
        try:
            result = check()
        except LakewardenError as raised:
            error = raised
        duration = int((time.monotonic() - started) * 1000)
        status = CheckStatus.PASSED if error is None else CheckStatus.FAILED
        self.checks.append(Check(name, status, duration, error.message if error else None, error))
        return result

    def skip(self, reason: str, *names: CheckName) -> None:
        self.checks.extend(Check(name, CheckStatus.SKIPPED, reason=reason) for name in names)

    def has_failed(self, name: CheckName) -> bool:
        return any(check.name is name for check in self.failed)

    def ensure_valid(self) -> None:
        """Raise the first failure; its message also contains the others."""
        if not self.failed:
            return
        first, *others = [check.error for check in self.failed if check.error is not None]
        further = "".join(f"; also {check.name}: {check.reason}" for check in self.failed[1:])
        if not others:
            raise first
        raise type(first)(first.message + further) from first
