"""`/health`: 200 when a request could be answered now, 503 with the reason when not."""

from django.db import Error, connection
from django.http import HttpRequest, HttpResponse

from lakewarden import __version__
from lakewarden.http.responses import json_response


def health(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 Django's signature
    try:
        with connection.cursor() as cursor:
            cursor.execute("select 1")
        database = "up"
    except Error:
        connection.close()
        database = "down"
    answer = {"status": database, "version": __version__, "database": database}
    return json_response(answer, status=200 if database == "up" else 503)
