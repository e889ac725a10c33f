"""The response body of a validation; for warehouses.py and warehouse_storage.py."""

from typing import Any

from rest_framework import serializers

from lakewarden.http.errors import error_body
from management.base_serializers import Shape
from tenants.services.validation_report import Check, CheckName, CheckStatus, Report


class CheckErrorShape(Shape):
    message = serializers.CharField()
    type = serializers.CharField()
    code = serializers.IntegerField()


class StorageCheckShape(Shape):
    name = serializers.ChoiceField(choices=[name.value for name in CheckName])
    status = serializers.ChoiceField(choices=[status.value for status in CheckStatus])
    duration_ms = serializers.IntegerField(required=False)
    reason = serializers.CharField(required=False)
    error = CheckErrorShape(required=False)


class ReportShape(Shape):
    """`valid`: no check failed. Checks that do not apply are skipped, with a reason."""

    valid = serializers.BooleanField()
    checks = StorageCheckShape(many=True)


def report_body(report: Report) -> dict[str, Any]:
    """The response body of a dry run."""
    return {"valid": report.valid, "checks": [_check(check) for check in report.checks]}


def _check(check: Check) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": check.name.value, "status": check.status.value}
    if check.duration_ms is not None:
        plain["duration-ms"] = check.duration_ms
    if check.reason is not None:
        plain["reason"] = check.reason
    if check.error is not None:
        plain |= error_body(check.error)
    return plain
