"""Changes as events: `GET /events` of a project, for everybody who sees it, and `GET /server/events` of the server.

`lakewarden.http.event_streams` asks these views for each page of a stream, and again for who waits.
"""

import json
from datetime import UTC, datetime

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden import config
from lakewarden.authz.actions import ProjectAction, ServerAction
from lakewarden.errors import BadRequest
from lakewarden.events import log
from lakewarden.events.envelope import encoded
from lakewarden.events.types import EVENTS
from lakewarden.http.event_pages import PAGE, EventPage
from lakewarden.paging import MAX_PAGE_SIZE, Page
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
    OpenApiParameter(
        "wait",
        int,
        description="Seconds to wait for events if there are none yet, at most `LAKEWARDEN__EVENTS__LONGEST_WAIT_S`.",
    ),
    OpenApiParameter(
        "Last-Event-ID",
        str,
        OpenApiParameter.HEADER,
        description="For streams: the `id` of the last event that the reader has, instead of `pageToken`.",
    ),
    *PAGE_PARAMETERS,
]
_KNOWN = ("type", "object-type", "object-id", "since", "wait", "pageToken", "pageSize")
_TYPES = 200
_DIGITS = 19


class EventsShape(Shape):
    events = serializers.ListField(
        child=serializers.DictField(), help_text="As sinks receive them (CloudEvents 1.0), in their order."
    )
    next_page_token = serializers.CharField(help_text="Where the next page begins, also if there is nothing yet.")
    more = serializers.BooleanField(help_text="Whether there may be more already.")


_RESPONSES = {(200, "application/json"): EventsShape, (200, "text/event-stream"): OpenApiTypes.STR}


class EventsView(ManagementView):
    """The base of both lists."""

    def _wanted(self) -> Wanted:
        """Raises BadRequest."""
        for name in self.call.query:
            if name not in _KNOWN:
                raise BadRequest(f"Unknown query parameter {name[:80]!r}: known are {', '.join(_KNOWN)}")
        types = [each.strip() for each in (text_filter(self.call, "type") or "").split(",") if each.strip()]
        if len(types) > _TYPES:
            raise BadRequest(f"Invalid query parameter type: it names {len(types)} types, at most {_TYPES} are allowed")
        for each in types:
            if each not in EVENTS:
                raise BadRequest(f"Invalid query parameter type={each[:80]!r}: there is no such type of event")
        self._check_wait()
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

    def _check_wait(self) -> None:
        text, most = self.call.query.get("wait"), config.current().events.longest_wait_s
        if text is not None and not (text.isascii() and text.isdigit() and int(text[:_DIGITS]) <= most):
            raise BadRequest(f"Invalid query parameter wait={text[:80]!r}: seconds from 0 to {most} are expected")

    def _after(self) -> int | None:
        asked = self._asked
        if asked is not None and asked.after is not None:
            return asked.after
        is_stream = asked is not None and asked.is_stream
        last_id = self.call.headers.get("last-event-id") if is_stream else None
        after = self.page.after if last_id is None else self._key_of(last_id)
        if after is None:
            # a stream begins with what comes
            return log.last_position() if is_stream and "since" not in self.call.query else None
        if not (after.isascii() and after.isdigit()) or len(after) > _DIGITS:
            raise BadRequest("Invalid pageToken: it was not issued by this server for events")
        return min(int(after), 2**62)

    @staticmethod
    def _key_of(last_id: str) -> str | None:
        try:
            return Page.parse({"pageToken": last_id}).after if last_id else None
        except BadRequest:
            raise BadRequest(
                f"Invalid header Last-Event-ID: {last_id[:80]!r} is not the id of an event of this stream"
            ) from None

    def _limit(self) -> int:
        return self.page.size or MAX_PAGE_SIZE

    @property
    def _asked(self) -> EventPage | None:
        """The page that a reader who waits has asked for."""
        found: EventPage | None = self.request._request.META.get(PAGE)  # noqa: SLF001 DRF has no public attribute for it
        return found

    def _answer(self, found: Found, *, project: str | None) -> Response:
        source = config.current().events.source
        bodies = [encoded(each, source=source) for each in found.events]
        asked = self._asked
        if asked is not None:
            positions = [each.position for each in found.events]
            asked.fill(
                list(zip(positions, bodies, strict=True)), project=project, position=found.position, more=found.more
            )
            if asked.is_stream:
                return Response(status=204)
        events = [json.loads(each) for each in bodies]
        return Response(
            EventsShape.of({"events": events, "next_page_token": token_of(str(found.position)), "more": found.more})
        )


class Events(EventsView):
    @extend_schema(responses=_RESPONSES, parameters=_FILTERS)
    def get(self, _request: Request) -> Response:
        """List changes in the project, oldest first.

        Whoever may read the project's audit gets all of them. Others get those of warehouses in which they see
        everything, and those of the namespaces, tables and views that they see, since these are where they are now.
        A page may be empty while `more` is true: go on with its `next-page-token`. The token of the last page returns
        what is logged later; with `wait`, the request waits for it.

        With `Accept: text/event-stream`, the response is a stream of server-sent events. Without `pageToken`, `since`
        and `Last-Event-ID` it begins with what is logged from now on. The caller's rights are checked for each event.
        If they may no longer read, the last event is `end`, with the error.
        """
        granted = access.project(self.context, self.project_id, ProjectAction.GET_METADATA)
        found = event_reading.of_project(granted, self._wanted(), after=self._after(), limit=self._limit())
        return self._answer(found, project=granted.target.id)


class ServerEvents(EventsView):
    @extend_schema(responses=_RESPONSES, parameters=_FILTERS)
    def get(self, _request: Request) -> Response:
        """List changes on the whole server, oldest first; events that belong to no project are included.

        `wait` and `Accept: text/event-stream` are as for the events of a project.
        """
        granted = access.server(self.context, ServerAction.READ_AUDIT)
        found = event_reading.of_server(granted, self._wanted(), after=self._after(), limit=self._limit())
        return self._answer(found, project=None)


routes = [
    path("events", Events.as_view()),
    path("server/events", ServerEvents.as_view()),
]
