"""The number of calls of each route: `POST /endpoint-statistics`. Each page is a window of time."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Literal, Self
from uuid import UUID

from django.urls import path
from django.utils.dateparse import parse_duration
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ProjectAction, WarehouseAction
from lakewarden.errors import BadRequest, NoSuchWarehouse
from lakewarden.paging import Page, next_token
from lakewarden.usage import call_statistics
from lakewarden.usage.call_statistics import CalledEndpoint, Wanted
from management.api import ManagementView
from management.base_serializers import Body, Shape
from tenants import access

DAY = timedelta(days=1)
LONGEST = 92  # days in a window
_FIRST, _LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


class WarehouseFilterBody(Body):
    """Selects calls for one warehouse (`warehouse-id`, with its `id`), for no warehouse (`unmapped`), or `all`."""

    type = serializers.ChoiceField(choices=["all", "unmapped", "warehouse-id"])
    id = serializers.UUIDField(required=False)


class RangeSpecifierBody(Body):
    """A `window`: an ISO 8601 `interval` (days, hours, …) before `end`; or the `page-token` of another response."""

    type = serializers.ChoiceField(choices=["window", "page-token"])
    end = serializers.DateTimeField(required=False)
    interval = serializers.CharField(required=False, max_length=64)
    token = serializers.CharField(required=False, max_length=255)


@extend_schema_field(WarehouseFilterBody)
class WarehouseFilterField(serializers.DictField):
    """Parsed by a `Body` of its own, which also refuses unknown members."""


@extend_schema_field(RangeSpecifierBody)
class RangeSpecifierField(serializers.DictField):
    """Like WarehouseFilterField."""


class EndpointStatisticsBody(Body):
    warehouse = WarehouseFilterField()
    status_codes = serializers.ListField(
        child=serializers.IntegerField(min_value=100, max_value=599), required=False, max_length=500
    )
    range_specifier = RangeSpecifierField(required=False)


class CalledEndpointShape(Shape):
    count = serializers.IntegerField()
    http_route = serializers.CharField()
    status_code = serializers.IntegerField()
    warehouse_id = serializers.UUIDField(required=False)
    warehouse_name = serializers.CharField(required=False)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(required=False)


class EndpointStatisticsShape(Shape):
    """`timestamps` are the ends of the hours with calls; `called-endpoints` has a list for each, in that order."""

    timestamps = serializers.ListField(child=serializers.DateTimeField())
    called_endpoints = serializers.ListField(child=CalledEndpointShape(many=True))
    next_page_token = serializers.CharField()
    previous_page_token = serializers.CharField()


class Window:
    """The hours that begin in [end - interval, end)."""

    def __init__(self, end: datetime, interval: timedelta) -> None:
        if not call_statistics.HOUR <= interval <= timedelta(days=LONGEST):
            raise BadRequest(f"range-specifier.interval: must be from one hour (PT1H) to {LONGEST} days (P{LONGEST}D)")
        if not _FIRST <= end <= _LAST:
            raise BadRequest(f"range-specifier.end: {end.isoformat()} is not between the years 2000 and 2200")
        self.end, self.interval = end, interval

    @classmethod
    def parse(cls, specifier: dict[str, Any] | None) -> Self:
        """Parse a range specifier; None: the last day. Raises BadRequest."""
        if specifier is None:
            return cls(datetime.now(UTC), DAY)
        body = RangeSpecifierBody.parse(specifier)
        given = {name for name in ("end", "interval", "token") if body.get(name) is not None}
        if body.get("type") == "window" and given == {"end", "interval"}:
            return cls(body.get("end"), _interval(body.get("interval")))
        if body.get("type") == "page-token" and given == {"token"}:
            return cls.of_token(body.get("token"))
        raise BadRequest(
            "range-specifier: the type window takes only `end` and `interval`, the type page-token only `token`"
        )

    @classmethod
    def of_token(cls, token: str) -> Self:
        end, _, seconds = (Page.parse({"pageToken": token}).after or "").partition(" ")
        try:
            return cls(datetime.fromisoformat(end).astimezone(UTC), timedelta(seconds=float(seconds)))
        except (ValueError, OverflowError):
            raise BadRequest(f"range-specifier.token: {token[:80]!r} was not issued by this server") from None

    def token(self, *, steps: int) -> str:
        """The page token of the window `steps` windows later."""
        end = self.end + steps * self.interval
        return next_token(f"{end.isoformat()} {self.interval.total_seconds()}")


class EndpointStatistics(ManagementView):
    @extend_schema(request=EndpointStatisticsBody, responses={200: EndpointStatisticsShape})
    def post(self, _request: Request) -> Response:
        """Count calls by hour, route, status and warehouse.

        Without a window, the last day is returned. Each response has the page tokens of the windows before and after
        it, even if they are empty. Calls of the last half minute may still be missing.
        """
        body = self.body(EndpointStatisticsBody)
        window = Window.parse(body.get("range_specifier"))
        project_id, warehouse = self._wanted(WarehouseFilterBody.parse(body.get("warehouse")))
        wanted = Wanted(window.end - window.interval, window.end, warehouse, body.get("status_codes", ()))
        return Response(EndpointStatisticsShape.of(_answer(call_statistics.hourly(project_id, wanted), window)))

    def _wanted(self, body: WarehouseFilterBody) -> tuple[str, UUID | Literal["all", "unmapped"]]:
        """The project and the filter, authorized. Raises BadRequest, NoSuchProject, NoSuchWarehouse, Forbidden."""
        kind, identifier = body.get("type"), body.get("id")
        if (kind == "warehouse-id") != (identifier is not None):
            raise BadRequest("warehouse: `id` is only allowed with the type `warehouse-id`")
        if identifier is None:
            project = access.project(self.context, self.project_id, ProjectAction.GET_ENDPOINT_STATISTICS)
            return project.target.id, kind
        warehouse = access.warehouse(self.context, identifier, WarehouseAction.GET_ENDPOINT_STATISTICS)
        if warehouse.target.project_id != self.project_id:
            raise NoSuchWarehouse(f"Warehouse does not exist: {identifier}")
        return warehouse.target.project_id, identifier


def _answer(found: list[CalledEndpoint], window: Window) -> dict[str, Any]:
    hours = {until: [asdict(each) for each in calls] for until, calls in groupby(found, lambda each: each.until)}
    return {
        "timestamps": list(hours),
        "called_endpoints": list(hours.values()),
        "next_page_token": window.token(steps=1),
        "previous_page_token": window.token(steps=-1),
    }


def _interval(text: str) -> timedelta:
    try:
        interval = parse_duration(text) if text.startswith("P") else None
    except (ValueError, OverflowError):
        interval = None
    if interval is None:
        raise BadRequest(
            f"range-specifier.interval: {text!r} is not a valid ISO 8601 duration of days, hours, minutes, seconds"
        )
    return interval


routes = [
    path("endpoint-statistics", EndpointStatistics.as_view()),
]
