"""All URLs of the server."""

from django.urls import include, path

from catalog.api.generic_tables.urls import MOUNTS
from catalog.api.urls import HOT_ROUTES
from ingest.api import gateway

__all__ = ["HOT_ROUTES", "gateway", "urlpatterns"]

handler400 = "lakewarden.http.errors.bad_request"
handler404 = "lakewarden.http.errors.not_found"
handler500 = "lakewarden.http.errors.server_error"

urlpatterns = [
    path("catalog/", include("catalog.api.urls")),
    *(path(mount.removeprefix("/") + "/", include("catalog.api.generic_tables.urls")) for mount in MOUNTS),
    path("lakehouse/", include("catalog.api.lakehouse")),
    path("management/", include("catalog.api.metrics_reports")),
    path("management/", include("management.urls")),
    path("", include("console.urls")),
]
