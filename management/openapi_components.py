"""The parts of the OpenAPI document that do not come from views: error model, security, a route of the catalog."""

from typing import Final

ERROR: Final = {"$ref": "#/components/responses/Error"}

PATHS: Final = {
    "/management/v1/warehouse/{warehouse}/table/{table}/metrics-reports": {
        "get": {
            "operationId": "getWarehouseByWarehouseTableByTableMetricsReports",
            "description": "List what engines reported about scans of the table and commits to it, newest first. "
            "Reports contain the filters of other users' scans, so only callers who may read the "
            "table's data may read them.",
            "summary": "List what engines reported about scans of the table and commits to it, newest first",
            "parameters": [
                {"in": "path", "name": "warehouse", "schema": {"type": "string"}, "required": True},
                {
                    "in": "path",
                    "name": "table",
                    "schema": {"type": "string"},
                    "required": True,
                    "description": "The table's id or its `table-uuid`.",
                },
                {
                    "in": "query",
                    "name": "pageToken",
                    "description": "The `next-page-token` of the previous page.",
                    "schema": {"type": "string"},
                },
                {
                    "in": "query",
                    "name": "pageSize",
                    "description": "The maximum number of reports; 100 by default.",
                    "schema": {"type": "integer"},
                },
                {
                    "in": "query",
                    "name": "report-type",
                    "description": "Only reports of this type.",
                    "schema": {"type": "string", "enum": ["scan-report", "commit-report"]},
                },
            ],
            "tags": ["warehouse"],
            "responses": {
                "200": {
                    "description": "OK",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MetricsReports"}}},
                },
                "4XX": ERROR,
                "5XX": ERROR,
            },
        }
    }
}
"""Routes that are not DRF views (`catalog.api.metrics_reports`)."""

COMPONENTS: Final = {
    "securitySchemes": {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "An access token of a configured identity provider, or of a Kubernetes service account.",
        }
    },
    "schemas": {
        "Error": {
            "type": "object",
            "description": "An error, in the format of the Iceberg REST API.",
            "properties": {
                "error": {
                    "type": "object",
                    "properties": {
                        "message": {
                            "type": "string",
                            "description": "What was wrong, with which value, and what would be right; for people.",
                        },
                        "type": {
                            "type": "string",
                            "description": "The type of the error, for programs, such as `NoSuchWarehouseException`.",
                        },
                        "code": {"type": "integer", "description": "The HTTP status."},
                    },
                    "required": ["code", "message", "type"],
                }
            },
            "required": ["error"],
        },
        "MetricsReports": {
            "type": "object",
            "properties": {
                "metrics-reports": {
                    "type": "array",
                    "description": "The reports, newest first.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "integer"},
                            "received-at": {"type": "string", "format": "date-time"},
                            "actor": {"type": "string"},
                            "report-type": {"type": "string"},
                            "report": {
                                "type": "object",
                                "description": "The report, in the format of the Iceberg REST API.",
                            },
                        },
                        "required": ["actor", "id", "received-at", "report", "report-type"],
                    },
                },
                "next-page-token": {"type": ["string", "null"]},
            },
            "required": ["metrics-reports", "next-page-token"],
        },
    },
    "responses": {
        "Error": {
            "description": "The request was refused (4XX) or failed (5XX). The server's log has the value of "
            "X-Request-Id.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
    },
}
