"""The delivery of events: sinks, what they refused, delivering again, and metrics; for those who run the server."""

from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ServerAction
from lakewarden.errors import BadRequest
from lakewarden.events import administration, dead_letters, metrics, progress
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.pagination import PAGE_PARAMETERS, text_filter, token_of
from tenants import access

MOST_IDS = 1000
_LARGEST = 2**63 - 1


class SinkShape(Shape):
    name = serializers.CharField(help_text="The name of the sink in the settings.")
    waiting = serializers.IntegerField(help_text="Events that the sink has not received.")
    oldest = serializers.DateTimeField(required=False, help_text="When the oldest of them was logged.")
    rate = serializers.FloatField(help_text="Events per second, in about the last minute.")
    sent = serializers.IntegerField(help_text="Events that were sent to it, in all.")
    dead_letters = serializers.IntegerField(help_text="Events that it refused and that are kept.")
    failure = serializers.CharField(required=False, help_text="Why the sink takes no events now.")
    failing_since = serializers.DateTimeField(required=False, help_text="The first failure since it took one.")
    seen_at = serializers.DateTimeField(required=False, help_text="When a worker last served the sink.")


class SinksShape(Shape):
    unnumbered = serializers.IntegerField(help_text="Events that wait for a worker to number them.")
    sinks = SinkShape(many=True, help_text="The sinks that any worker has served.")


class LetterShape(Shape):
    id = serializers.IntegerField(help_text="Its number.")
    sink = serializers.CharField(help_text="The sink that refused it.")
    event_id = serializers.UUIDField(help_text="The id of the event.")
    type = serializers.CharField(help_text="The type of the event.")
    reason = serializers.CharField(help_text="Why it was refused the last time.")
    attempts = serializers.IntegerField(help_text="How often it was sent.")
    first_at = serializers.DateTimeField(help_text="The time of the first attempt.")
    last_at = serializers.DateTimeField(help_text="The time of the last attempt.")
    again = serializers.BooleanField(help_text="Whether a worker will send it once more.")


class LettersShape(Shape):
    dead_letters = LetterShape(many=True, help_text="The events that were refused.")
    next_page_token = serializers.CharField(required=False)


class LetterDetailsShape(LetterShape):
    event = serializers.DictField(help_text="As it would have been delivered (CloudEvents 1.0).")


class ReplayBody(Body):
    since = serializers.DateTimeField(help_text="Time of logging from which events are delivered again.")
    dry_run = serializers.BooleanField(default=False, help_text="Only count the events.")


class ReplayShape(Shape):
    sink = serializers.CharField(help_text="The sink.")
    since = serializers.DateTimeField(help_text="The time that was given.")
    events = serializers.IntegerField(help_text="How many events of the log lie behind it; filters are ignored.")


class LettersBody(Body):
    sink = serializers.CharField(max_length=200, help_text="The name of the sink in the settings.")
    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_LARGEST),
        required=False,
        allow_empty=False,
        max_length=MOST_IDS,
        help_text="Ids of dead letters; without them, all of the sink.",
    )


class CountShape(Shape):
    count = serializers.IntegerField(help_text="How many there were.")


class EventSinks(ManagementView):
    @extend_schema(responses={200: SinksShape})
    def get(self, _request: Request) -> Response:
        """List the sinks of events and how far they are."""
        access.server(self.context, ServerAction.READ_EVENT_DELIVERY)
        sinks = [_sink(each) for each in progress.sinks()]
        return Response(SinksShape.of({"unnumbered": progress.unlogged(), "sinks": sinks}))


class Replay(ManagementView):
    @extend_schema(request=ReplayBody, responses={200: ReplayShape})
    def post(self, _request: Request, sink: str) -> Response:
        """Deliver the events since a time to a sink again, or count them. Only operators may.

        Receivers recognize them by their `id`. The events of the log are kept for a while only, so older ones are gone.
        """
        access.server(self.context, ServerAction.CONTROL_EVENT_DELIVERY)
        body = self.body(ReplayBody)
        found = administration.replay(sink, since=body.get("since"), dry_run=body.get("dry_run"), context=self.context)
        return Response(ReplayShape.of(found))


class DeadLetters(ManagementView):
    @extend_schema(
        responses={200: LettersShape},
        parameters=[OpenApiParameter("sink", str, description="Only those of this sink."), *PAGE_PARAMETERS],
    )
    def get(self, _request: Request) -> Response:
        """List the events that sinks refused, the oldest first."""
        access.server(self.context, ServerAction.READ_EVENT_DELIVERY)
        page = self.page
        after = _number(page.after, "pageToken") if page.after else 0
        found = dead_letters.listed(sink=text_filter(self.call, "sink"), after=after, limit=page.limit)
        letters, following = page.cut([(each, str(each.id)) for each in found])
        return Response(LettersShape.of({"dead_letters": letters, "next_page_token": token_of(following)}))


class DeadLetter(ManagementView):
    @extend_schema(responses={200: LetterDetailsShape})
    def get(self, _request: Request, letter_id: str) -> Response:
        """Read an event that a sink refused."""
        access.server(self.context, ServerAction.READ_EVENT_DELIVERY)
        return Response(LetterDetailsShape.of(dead_letters.get(_number(letter_id, "letter id"))))


class SendDeadLetters(ManagementView):
    @extend_schema(request=LettersBody, responses={200: CountShape})
    def post(self, _request: Request) -> Response:
        """Send events once more that a sink refused. Only operators may."""
        access.server(self.context, ServerAction.CONTROL_EVENT_DELIVERY)
        return _counted(administration.send_again(**_chosen(self.body(LettersBody)), context=self.context))


class DropDeadLetters(ManagementView):
    @extend_schema(request=LettersBody, responses={200: CountShape})
    def post(self, _request: Request) -> Response:
        """Delete events that a sink refused. Only operators may."""
        access.server(self.context, ServerAction.CONTROL_EVENT_DELIVERY)
        return _counted(administration.drop(**_chosen(self.body(LettersBody)), context=self.context))


class Metrics(ManagementView):
    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, _request: Request) -> HttpResponse:
        """Read the metrics of the delivery of events, in the text format of Prometheus."""
        access.server(self.context, ServerAction.READ_EVENT_DELIVERY)
        return HttpResponse(metrics.exposition(), content_type=metrics.CONTENT_TYPE)


def _sink(sink: progress.Progress) -> dict[str, object]:
    names = ("name", "waiting", "oldest", "rate", "sent", "dead_letters", "failing_since", "seen_at")
    return {name: getattr(sink, name) for name in names} | {"failure": sink.failure or None}


def _chosen(body: Body) -> dict[str, Any]:
    return {"sink": body.get("sink"), "ids": body.get("ids")}


def _counted(count: int) -> Response:
    return Response(CountShape.of({"count": count}))


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > _LARGEST:
        raise BadRequest(f"Invalid {name} {text[:80]!r}: a number from 1 is expected")
    return int(text)


routes = [
    path("server/metrics", Metrics.as_view()),
    path("server/event-sink", EventSinks.as_view()),
    path("server/event-sink/<str:sink>/replay", Replay.as_view()),
    path("server/event-dead-letter", DeadLetters.as_view()),
    path("server/event-dead-letter/send", SendDeadLetters.as_view()),
    path("server/event-dead-letter/drop", DropDeadLetters.as_view()),
    path("server/event-dead-letter/<str:letter_id>", DeadLetter.as_view()),
]
