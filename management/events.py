"""Changes as events: `GET /events` of a project, for everybody who sees it, and `GET /server/events` of the server."""

import json
from datetime import UTC, datetime

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden import config
from lakewarden.authz.actions import ProjectAction, ServerAction
from lakewarden.errors import BadRequest
from lakewarden.events.envelope import encoded
from lakewarden.events.types import EVENTS
from lakewarden.paging import MAX_PAGE_SIZE
from management.api import ManagementView
from management.base_serializers import Shape
from management.pagination import PAGE_PARAMETERS, text_filter, token_of
from permissions import event_reading
from permissions.event_reading import Found, Wanted
from tenants import access

_FILTERS = [
    OpenApiParameter("type", str, description="Only these types, separated by commas: `createTable,updateTable`."),
    OpenApiParameter("object-type", str, description="Only events about objects of this type, such as `table`."),
    OpenApiParameter("object-id", str, description="Only events about the object with this id."),
    OpenApiParameter(
        "since", str, description="Only events that were logged from this time on; not counted with a `pageToken`."
    ),
    *PAGE_PARAMETERS,
]
_KNOWN = ("type", "object-type", "object-id", "since", "pageToken", "pageSize")
_DIGITS = 19


class EventsShape(Shape):
    events = serializers.ListField(
        child=serializers.DictField(), help_text="As sinks receive them (CloudEvents 1.0), in their order."
    )
    next_page_token = serializers.CharField(help_text="Where the next page begins, also if there is nothing yet.")
    more = serializers.BooleanField(help_text="Whether there may be more already.")


class EventsView(ManagementView):
    """The base of both lists."""

    def _wanted(self) -> Wanted:
        """Raises BadRequest."""
        for name in self.call.query:
            if name not in _KNOWN:
                raise BadRequest(f"Unknown query parameter {name[:80]!r}: known are {', '.join(_KNOWN)}")
        types = [each.strip() for each in (text_filter(self.call, "type") or "").split(",") if each.strip()]
        for each in types:
            if each not in EVENTS:
                raise BadRequest(f"Invalid query parameter type={each[:80]!r}: there is no such type of event")
        return Wanted(
            types=types,
            object_type=text_filter(self.call, "object-type") or "",
            object_id=text_filter(self.call, "object-id") or "",
            since=self._since(),
        )

    def _since(self) -> datetime | None:
        text = self.call.query.get("since")
        if text is None:
            return None
        try:
            # an unencoded `+` of a time zone arrives as a blank
            time = datetime.fromisoformat(text.replace(" ", "+"))
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            raise BadRequest(
                f"Invalid query parameter since={text[:80]!r}: a date (2026-11-21) or a time with its offset "
                "(2026-11-21T08:00:00Z) is expected"
            ) from None

    def _after(self) -> int | None:
        after = self.page.after
        if after is None:
            return None
        if not (after.isascii() and after.isdigit()) or len(after) > _DIGITS:
            raise BadRequest("Invalid pageToken: it was not issued by this server for events")
        return min(int(after), 2**62)

    def _limit(self) -> int:
        return self.page.size or MAX_PAGE_SIZE

    def _answer(self, found: Found) -> Response:
        source = config.current().events.source
        events = [json.loads(encoded(each, source=source)) for each in found.events]
        return Response(
            EventsShape.of({"events": events, "next_page_token": token_of(str(found.position)), "more": found.more})
        )


class Events(EventsView):
    @extend_schema(responses={200: EventsShape}, parameters=_FILTERS)
    def get(self, _request: Request) -> Response:
        """List changes in the project, oldest first.

        Whoever may read the project's audit gets all of them. Others get those of warehouses in which they see
        everything, and those of the namespaces, tables and views that they see, since these are where they are now.
        A page may be empty while `more` is true: go on with its `next-page-token`. The token of the last page returns
        what is logged later.
        """
        granted = access.project(self.context, self.project_id, ProjectAction.GET_METADATA)
        found = event_reading.of_project(granted, self._wanted(), after=self._after(), limit=self._limit())
        return self._answer(found)


class ServerEvents(EventsView):
    @extend_schema(responses={200: EventsShape}, parameters=_FILTERS)
    def get(self, _request: Request) -> Response:
        """List changes on the whole server, oldest first; events that belong to no project are included."""
        granted = access.server(self.context, ServerAction.READ_AUDIT)
        return self._answer(event_reading.of_server(granted, self._wanted(), after=self._after(), limit=self._limit()))


routes = [
    path("events", Events.as_view()),
    path("server/events", ServerEvents.as_view()),
]
