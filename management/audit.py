"""The audit: `GET /audit` of a project, for its security administrators, and `GET /server/audit` of the server."""

from datetime import UTC, datetime

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.audit import search
from lakewarden.audit.models import AuditEntry
from lakewarden.audit.search import Wanted
from lakewarden.authz.actions import ProjectAction, ServerAction
from lakewarden.errors import BadRequest
from management.api import ManagementView
from management.base_serializers import Shape
from management.pagination import PAGE_PARAMETERS, token_of
from tenants import access

LONGEST = 1000  # characters of a filter
_FIRST, _LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)

_COLUMNS = {
    "actor": ("actor", "Id of the caller, e.g. `oidc~4f1c`."),
    "assumed-role": ("assumed_role", "Id of the role that the caller acted as."),
    "action": ("action", "The change or decision, e.g. `createTable` or `get_metadata`."),
    "object-type": ("object_type", "`table`, `warehouse`, `role`, …"),
    "object-id": ("object_id", "Id of the object."),
    "outcome": ("outcome", "The outcome."),
    "request-id": ("request_id", "The request's `x-request-id`."),
}
_OUTCOMES = [str(outcome) for outcome in AuditEntry.Outcome]
_FILTERS = [
    OpenApiParameter(name, str, description=text, enum=_OUTCOMES if name == "outcome" else None)
    for name, (_, text) in _COLUMNS.items()
] + [
    OpenApiParameter(
        "from", str, description="Only entries from this time on: `2026-11-21` or `2026-11-21T08:00:00Z`."
    ),
    OpenApiParameter("to", str, description="Only entries before this time."),
]
_OWN = OpenApiParameter("without-project", bool, description="Only entries that belong to no project.")
_OF_PROJECT = OpenApiParameter("project-id", str, description="Only entries of this project.")


class AuditEntryShape(Shape):
    """An entry for `count` equal decisions from `at` to `last-at`; request id and user agent are those of the first
    one.

    `reason` is the message of a refusal; `details` are names and ids of a change, the `privileges` because of which a
    request was allowed, or the refused request (`asked`).
    """

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    last_at = serializers.DateTimeField(required=False)
    actor = serializers.CharField()
    assumed_role = serializers.CharField(required=False)
    action = serializers.CharField()
    object_type = serializers.CharField()
    object_id = serializers.CharField()
    project_id = serializers.CharField(required=False)
    outcome = serializers.ChoiceField(choices=AuditEntry.Outcome.choices)
    reason = serializers.CharField(required=False)
    request_id = serializers.CharField(required=False)
    user_agent = serializers.CharField(required=False)
    count = serializers.IntegerField()
    details = serializers.DictField()

    def to_representation(self, instance: object) -> dict[str, object]:
        """Omits empty values, too."""
        plain = super().to_representation(instance)
        return {name: value for name, value in plain.items() if value != ""}


class AuditShape(Shape):
    entries = AuditEntryShape(many=True)
    next_page_token = serializers.CharField(required=False)


class AuditView(ManagementView):
    """The base of both lists."""

    def _wanted(self, *more: str) -> Wanted:
        """The filters in the query; `more` are parameters that only this list has. Raises BadRequest."""
        known = [*_COLUMNS, "from", "to", "pageToken", "pageSize", *more]
        for name in self.call.query:
            if name not in known:
                raise BadRequest(f"Unknown query parameter {name[:80]!r}: known are {', '.join(known)}")
        equal = {column: self._text(name) for name, (column, _) in _COLUMNS.items() if name in self.call.query}
        if (outcome := equal.get("outcome", _OUTCOMES[0])) not in _OUTCOMES:
            raise BadRequest(f"Invalid query parameter outcome={outcome[:80]!r}: known are {', '.join(_OUTCOMES)}")
        start, end = self._time("from"), self._time("to")
        if start is not None and end is not None and start >= end:
            raise BadRequest(f"No entry can be from {start.isoformat()} and before {end.isoformat()}: swap from and to")
        return Wanted(equal, start, end)

    def _text(self, name: str) -> str:
        text = self.call.query[name]
        if not text or len(text) > LONGEST or not text.isprintable():
            raise BadRequest(
                f"Invalid query parameter {name}={text[:80]!r}: 1 to {LONGEST} characters are "
                "expected, none of them a control character"
            )
        return text

    def _time(self, name: str) -> datetime | None:
        text = self.call.query.get(name)
        if text is None:
            return None
        try:
            # an unencoded `+` of a time zone arrives as a blank
            time = datetime.fromisoformat(text.replace(" ", "+"))
            time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            time = None
        if time is None or not _FIRST <= time <= _LAST:
            raise BadRequest(
                f"Invalid query parameter {name}={text[:80]!r}: a date (2026-11-21) or a time with its offset "
                "(2026-11-21T08:00:00Z) is expected"
            )
        return time

    def _answer(self, found: tuple[list[AuditEntry], str | None]) -> Response:
        entries, following = found
        return Response(AuditShape.of({"entries": entries, "next_page_token": token_of(following)}))


class Audit(AuditView):
    @extend_schema(request=None, responses={200: AuditShape}, parameters=[*_FILTERS, *PAGE_PARAMETERS])
    def get(self, _request: Request) -> Response:
        """List changes and decisions in the project, newest first.

        Entries of the last few seconds may still be missing. Requires the right to read the project's audit: its
        security administrators and the server's administrators have it.
        """
        granted = access.project(self.context, self.project_id, ProjectAction.READ_AUDIT)
        return self._answer(search.of_project(granted.target.id, self._wanted(), self.page))


class ServerAudit(AuditView):
    @extend_schema(
        request=None, responses={200: AuditShape}, parameters=[*_FILTERS, _OWN, _OF_PROJECT, *PAGE_PARAMETERS]
    )
    def get(self, _request: Request) -> Response:
        """List changes and decisions of the whole server, newest first.

        Entries that belong to no project are included.
        """
        access.server(self.context, ServerAction.READ_AUDIT)
        wanted = self._wanted("without-project", "project-id")
        without = self.call.flag("without-project") or False
        if "project-id" in self.call.query:
            if without:
                raise BadRequest("without-project and project-id contradict each other: leave one out")
            wanted = Wanted({**wanted.equal, "project_id": self._text("project-id")}, wanted.start, wanted.end)
        return self._answer(search.of_server(wanted, self.page, only_its_own=without))


routes = [
    path("audit", Audit.as_view()),
    path("server/audit", ServerAudit.as_view()),
]
