"""What comes in from outside: through the chart's Ingress with TLS, and through its HTTPRoute, at a real proxy."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.k8s.lake import Lake
from tests.k8s.release import WITHIN, Release, secret
from tests.servers import contour
from tests.servers.certificates import Certificates
from tests.servers.kubernetes_node import ADDRESS, until

pytestmark = pytest.mark.timeout(1800)
INGRESS, ROUTE = "lake.example.org", "gateway.example.org"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.made(tmp_path_factory.mktemp("tls") / "lake", host=INGRESS)


@pytest.fixture(scope="module")
def outside(lw: Release, certificates: Certificates) -> Iterator[Release]:
    revision = lw.revision
    secret(lw, "lake-tls", **{"tls.crt": certificates.certificate.read_text(), "tls.key": certificates.key.read_text()})
    ingress = {
        "enabled": True,
        "className": "contour",
        "hosts": [INGRESS],
        "tls": [{"secretName": "lake-tls", "hosts": [INGRESS]}],
        "annotations": {"projectcontour.io/websocket-routes": "/"},
    }
    route = {"enabled": True, "hostnames": [ROUTE], "parentRefs": [contour.GATEWAY]}
    with contour.start(lw.node):
        lw.upgrade("--reset-then-reuse-values", values={"ingress": ingress, "gateway": route})
        yield lw
        lw.helm("rollback", lw.name, revision, "--wait", "--timeout", WITHIN)
        lw.kubectl("delete", "secret", "lake-tls")


@pytest.mark.parametrize("host", [INGRESS, ROUTE])
def test_tables_are_kept_from_outside(outside: Release, lake: Lake, certificates: Certificates, host: str) -> None:
    lake.make_table("outside")
    until(lambda: _ask(outside, host, "/health", certificates.authority)[0] == 200, host, outside.node)
    path = f"{lake.tables}/outside"
    assert _ask(outside, host, path, certificates.authority)[0] == 401
    change = json.dumps({"requirements": [], "updates": [{"action": "set-properties", "updates": {"from": host}}]})
    sent = ("-d", change, "-H", "Content-Type: application/json")
    status, answer = _ask(outside, host, path, certificates.authority, *sent, token=lake.token)
    assert (status, json.loads(answer)["metadata"]["properties"]["from"]) == (200, host)


@pytest.mark.parametrize("host", [INGRESS, ROUTE])
def test_changes_are_sent_through_sockets(outside: Release, lake: Lake, certificates: Certificates, host: str) -> None:
    until(lambda: _ask(outside, host, "/health", certificates.authority)[0] == 200, host, outside.node)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    sent = ["--http1.1", "-m", "5", "-H", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]
    for name, value in upgrade.items():
        sent += ["-H", f"{name}: {value}"]
    status, _ = _ask(outside, host, "/lakehouse/w/k8s/ws", certificates.authority, *sent, token=lake.token)
    assert status == 101


@pytest.mark.parametrize("host", [INGRESS, ROUTE])
def test_metrics_stay_inside(outside: Release, certificates: Certificates, host: str) -> None:
    until(lambda: _ask(outside, host, "/health", certificates.authority)[0] == 200, host, outside.node)
    status, answer = _ask(outside, host, "/metrics", certificates.authority)
    assert (status, "lakewarden_" in answer) == (404, False)


def _ask(release: Release, host: str, path: str, authority: Path, *sent: str, token: str = "") -> tuple[int, str]:
    """The status and what was answered; of a client that trusts only `authority`, where the host has TLS."""
    port, url = contour.HTTP_PORT, f"http://{host}:{contour.HTTP_PORT}{path}"
    if host == INGRESS:
        port, url = contour.HTTPS_PORT, f"https://{host}:{contour.HTTPS_PORT}{path}"
    known = ("--cacert", authority, "--resolve", f"{host}:{port}:{ADDRESS}")
    bearer = ("-H", f"Authorization: Bearer {token}") if token else ()
    said = release.node.run("curl", "-s", "-m", "30", *known, *bearer, *sent, "-w", "\n%{http_code}", url, check=False)
    content, _, status = said.rpartition("\n")
    return int(status or 0), content
