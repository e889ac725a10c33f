"""`/metrics` of a server of two processes and of a worker, as Prometheus reads them; logs as JSON."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import requests
from prometheus_client.parser import text_string_to_metric_families

from lakewarden.config import PREFIX
from standalone.commands import lakewarden_command
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess
from tests.servers.lakewarden_serve import LakewardenServer, prepared

PATIENCE_S = 60.0
SIGN_IN = {f"{PREFIX}OPENID__OIDC__ISSUER": "http://127.0.0.1:9/realms/none"}


def scraped(port: int) -> dict[tuple[str, str, str], float]:
    """Samples by name, route and status."""
    answer = requests.get(f"http://{HOST}:{port}/metrics", timeout=30)
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.text)
    return {
        (each.name, each.labels.get("route", ""), each.labels.get("status", "")): each.value
        for family in families
        for each in family.samples
    }


def eventually(port: int, holds: Callable[[dict[tuple[str, str, str], float]], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    found: dict[tuple[str, str, str], float] = {}
    while time.monotonic() < deadline:
        try:
            found = scraped(port)
        except requests.ConnectionError:
            found = {}
        if holds(found):
            return
        time.sleep(0.1)
    raise AssertionError(found)


def test_requests_of_all_processes_are_counted_by_route_and_logs_are_json() -> None:
    port = free_port()
    settings = {
        f"{PREFIX}METRICS__PORT": str(port),
        f"{PREFIX}SERVER__PROCESSES": "2",
        f"{PREFIX}SERVER__THREADS": "8",
        f"{PREFIX}LOG__FORMAT": "json",
    }
    with prepared(SIGN_IN | settings) as server:
        server.start()
        eventually(port, lambda found: found.get(("lakewarden_processes_ready", "", "")) == 2)
        for _ in range(10):  # each on a connection of its own, so that both processes answer some
            assert requests.get(f"{server.catalog_uri}/v1/config", timeout=30).status_code == 401
            assert requests.get(f"{server.uri}/made/up/path", timeout=30).status_code == 404
            assert requests.get(f"{server.uri}/health", timeout=30).status_code == 200
        counted = "lakewarden_http_request_duration_seconds_count"
        eventually(port, lambda found: found.get((counted, "GET /catalog/v1/config", "401")) == 10)
        found = scraped(port)
        assert found[counted, "other", "404"] == 10
        assert not [route for name, route, _ in found if name == counted and ("health" in route or "made" in route)]
        assert found["lakewarden_http_requests_in_progress", "", ""] == 0
        server.stop()
        lines = [line for line in server.log_text().splitlines() if line.startswith("{")]
        assert {"time", "level", "logger", "message"} <= json.loads(lines[0]).keys()


def test_a_worker_answers_for_the_database() -> None:
    port = free_port()
    with prepared(SIGN_IN | {f"{PREFIX}METRICS__WORKER_PORT": str(port)}) as server, worker(server):
        eventually(port, lambda found: found.get(("lakewarden_workers", "", "")) == 1)
        found = {name for name, _, _ in scraped(port)}
        assert {"lakewarden_database_up", "lakewarden_events_unnumbered"} <= found


def worker(server: LakewardenServer) -> ManagedProcess:
    return ManagedProcess(
        "lakewarden work",
        lakewarden_command("work"),
        log=server.log.with_name("work.log"),
        environment=server._environment(),
        directory=Path("/"),
        grace_s=30.0,
    )
