"""Every address that the server answers, in one place."""

from django.urls import include, path

from lakewarden.http.health import health

handler400 = "lakewarden.http.errors.bad_request"
handler404 = "lakewarden.http.errors.not_found"
handler500 = "lakewarden.http.errors.server_error"

urlpatterns = [
    path("health", health),
    path("catalog/", include("catalog.api.urls")),
    path("management/", include("management.urls")),
    path("", include("console.urls")),
]
