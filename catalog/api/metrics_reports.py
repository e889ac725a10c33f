"""`GET /management/v1/warehouse/{id}/table/{id}/metrics-reports`: the metrics reports of a table."""

import json
from dataclasses import replace

from django.http import HttpResponse
from django.urls import path

from catalog import access
from catalog.identifiers import NamespaceIdentifier, TabularIdentifier
from catalog.models import MetricsReport
from catalog.services import metrics
from lakewarden.authz.actions import TableAction, WarehouseAction
from lakewarden.errors import BadRequest
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_bytes
from lakewarden.paging import Page, next_token


class MetricsReportsEndpoint(Endpoint):
    """Newest first; `pageSize` is 100 by default; `report-type` (scan-report, commit-report) filters.

    `table` is the table's `table-uuid`. Reports contain the filters of other users' scans, so only callers who may read
    the data may read them.
    """

    def get(self, request: ApiRequest, *, warehouse: str, table: str) -> HttpResponse:
        page, kind = Page.parse(request.query), request.query.get("report-type")
        if kind not in {None, *metrics.TYPES}:
            raise BadRequest(
                f"Invalid query parameter report-type={str(kind)[:80]!r}: one of {', '.join(metrics.TYPES)} is expected"
            )
        if "pageSize" not in request.query:
            page = replace(page, size=metrics.DEFAULT_PAGE_SIZE)
        above = access.warehouse(request.context, warehouse, WarehouseAction.USE)
        found = access.tabular_of_id(request.context, str(above.target.id), table).target
        ref = TabularIdentifier(NamespaceIdentifier(warehouse, tuple(found.namespace.path)), found.name)
        granted = access.table(request.context, ref, TableAction.READ_DATA)
        reports, last = metrics.newest_first(granted, page, report_type=kind)
        body = {
            "metrics-reports": [_plain(report) for report in reports],
            "next-page-token": next_token(last) if last is not None else None,
        }
        # not msgspec: numbers in a report may exceed 64 bits, which only the standard library's encoder supports
        return json_bytes(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())


def _plain(report: MetricsReport) -> dict[str, object]:
    return {
        "id": report.pk,
        "received-at": report.received_at.isoformat(),
        "actor": report.actor,
        "report-type": report.report_type,
        "report": report.report,
    }


_ROUTE = "warehouse/<str:warehouse>/table/<str:table>/metrics-reports"

urlpatterns = [path(prefix + _ROUTE, MetricsReportsEndpoint.as_view()) for prefix in ("v1/", "")]
