"""A server as a process: what it has not written yet it writes before it ends; browsers are answered as configured."""

import urllib.error
import urllib.request
from collections.abc import Iterator

import psycopg
import pytest

from lakewarden.config import PREFIX
from tests.servers.lakewarden_serve import LakewardenServer, prepared

ORIGIN = "https://console.example.org"


@pytest.fixture(scope="module")
def server() -> Iterator[LakewardenServer]:
    settings = {
        f"{PREFIX}OPENID__OIDC__ISSUER": "https://issuer.invalid",
        f"{PREFIX}SERVER__CORS_ORIGINS": f"{ORIGIN},https://other.example.org",
        f"{PREFIX}USAGE__FLUSH_INTERVAL_S": "3600",
    }
    with prepared(settings) as made:
        yield made


def _refused(server: LakewardenServer, path: str, method: str = "GET", **headers: str) -> urllib.error.HTTPError:
    request = urllib.request.Request(f"{server.uri}{path}", method=method, headers=headers)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    caught.value.close()
    return caught.value


def test_refusals_are_written_when_the_server_stops(server: LakewardenServer) -> None:
    server.start()
    for _ in range(5):
        refused = _refused(server, "/catalog/v1/config?warehouse=lake", Origin=ORIGIN)
        assert (refused.code, refused.headers["Access-Control-Allow-Origin"]) == (401, ORIGIN)
        assert refused.headers["Cache-Control"] == "private"
    server.stop()
    with psycopg.connect(server.settings[f"{PREFIX}DATABASE__URL"]) as connection:
        rows = connection.execute("select action, outcome, details from audit_entry").fetchall()
    assert sum(details["count"] for _, _, details in rows) == 5
    assert {row[:2] for row in rows} == {("GET /catalog/v1/config", "unauthenticated")}
    assert "could not be written" not in server.log_text()


def test_a_browser_asks_first(server: LakewardenServer) -> None:
    server.start()
    asked = {"Access-Control-Request-Method": "POST", "Origin": ORIGIN}
    request = urllib.request.Request(f"{server.uri}/management/v1/project", method="OPTIONS", headers=asked)
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 204
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert answer.headers["X-Request-Id"]
    evil = _refused(server, "/management/v1/project", "OPTIONS", **{**asked, "Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in evil.headers
    server.stop()
