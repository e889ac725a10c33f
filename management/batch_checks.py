"""Checks of permissions: `POST /action/batch-check`, and the older `/permissions/check` for a single check."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import Action
from lakewarden.authz.model import is_allowed
from lakewarden.errors import BadRequest, Forbidden, NotFound
from management import batch_check_operations, identities
from management.api import ManagementView
from management.base_serializers import Body, Shape
from permissions import privileges
from permissions.privileges import Asked, NamedPrincipal, Rights

MAX_CHECKS = 1000

_CHECK = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "identity": identities.SCHEMA, "operation": batch_check_operations.SCHEMA},
    "required": ["operation"],
    "additionalProperties": False,
}


@extend_schema_field({"type": "array", "items": _CHECK, "maxItems": MAX_CHECKS})
class ChecksField(serializers.ListField):
    child = serializers.DictField()


@extend_schema_field(batch_check_operations.SCHEMA)
class OperationField(serializers.DictField):
    pass


@extend_schema_field(identities.SCHEMA)
class IdentityField(serializers.DictField):
    pass


class BatchCheckBody(Body):
    checks = ChecksField()
    error_on_not_found = serializers.BooleanField(default=False)


class CheckBody(Body):
    identity = IdentityField(required=False)
    operation = OperationField()


class ResultShape(Shape):
    id = serializers.CharField(required=False)
    allowed = serializers.BooleanField()


class BatchCheckShape(Shape):
    results = ResultShape(many=True)


class CheckShape(Shape):
    allowed = serializers.BooleanField()


@dataclass(frozen=True, slots=True)
class Check:
    """One check; `where` is its position in the request, for messages."""

    id: str | None
    identity: NamedPrincipal | None
    action: Action
    asked: Asked
    where: str


class BatchCheck(ManagementView):
    @extend_schema(request=BatchCheckBody, responses={200: BatchCheckShape})
    def post(self, _request: Request) -> Response:
        """Check which of several actions are allowed.

        The results are in the order of the checks. An object that does not exist or is hidden counts as not allowed;
        `error-on-not-found` answers with its 404 instead. At most 1,000 checks are allowed. Asking about another
        principal requires the right to read the grants on the object.
        """
        body = self.body(BatchCheckBody)
        given = body.get("checks")
        if len(given) > MAX_CHECKS:
            raise BadRequest(f"{len(given)} checks in one request: at most {MAX_CHECKS} are allowed")
        checks = [_check(each, f"checks[{index}]", self.project_id) for index, each in enumerate(given)]
        allowed = _answers(checks, Rights(self.context), error_on_not_found=body.get("error_on_not_found"))
        results = [
            {"allowed": is_allowed} if check.id is None else {"id": check.id, "allowed": is_allowed}
            for check, is_allowed in zip(checks, allowed, strict=True)
        ]
        return Response({"results": results})


class OneCheck(ManagementView):
    @extend_schema(request=CheckBody, responses={200: CheckShape})
    def post(self, _request: Request) -> Response:
        """Check whether one action is allowed. Like `POST /action/batch-check` with a single check."""
        body = self.body(CheckBody)
        check = _check({"identity": body.get("identity"), "operation": body.get("operation")}, "", self.project_id)
        (allowed,) = _answers([check], Rights(self.context), error_on_not_found=False)
        return Response(CheckShape.of({"allowed": allowed}))


def _answers(checks: Sequence[Check], known: Rights, *, error_on_not_found: bool) -> list[bool]:
    """The results of all checks. Each object is looked up once, and its privileges once for each principal."""
    found = privileges.find({check.asked for check in checks})
    return [_answer(check, found.get(check.asked), known, strict=error_on_not_found) for check in checks]


def _answer(check: Check, found: privileges.Found | None, known: Rights, *, strict: bool) -> bool:
    try:
        return is_allowed(check.action, known.held(check.asked, found, check.identity))
    except NotFound:
        if strict:
            raise
        return False
    except Forbidden as error:
        raise Forbidden(f"{check.where}: {error.message}".removeprefix(": ")) from None


def _check(value: Mapping[str, Any], where: str, project_id: str) -> Check:
    """Parse a check. Raises BadRequest, which names the invalid member."""
    batch_check_operations.ensure_members(value, {"id", "identity", "operation"}, where=where)
    identifier = value.get("id")
    if identifier is not None and not isinstance(identifier, str):
        raise BadRequest(f"{_at(where, 'id')}: {batch_check_operations.shown(identifier)} is not a string")
    identity = identities.of_body(value.get("identity"), where=_at(where, "identity"))
    action, asked = batch_check_operations.parse(
        value.get("operation"), where=_at(where, "operation"), project_id=project_id
    )
    return Check(identifier, identity, action, asked, where)


def _at(where: str, member: str) -> str:
    return f"{where}.{member}" if where else member


routes = [
    path("action/batch-check", BatchCheck.as_view()),
    path("permissions/check", OneCheck.as_view()),
]
