"""The autoscaler with a real metrics-server: servers are added under load and removed after it, and all is answered."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.k8s.lake import Lake
from tests.k8s.release import WITHIN, Release
from tests.servers import metrics_server
from tests.servers.kubernetes_node import until

pytestmark = pytest.mark.timeout(1800)
FEW, MANY = 2, 3
WITHIN_S = 420.0


@pytest.fixture
def scaled(lw: Release) -> Iterator[Release]:
    """`lw` with an autoscaler that removes a server soon after the load has gone."""
    revision = lw.revision
    behavior = {
        "scaleDown": {"stabilizationWindowSeconds": 15, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}
    }
    autoscaling = {"enabled": True, "minReplicas": FEW, "maxReplicas": MANY, "targetCPUUtilizationPercentage": 50}
    requests = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
    with metrics_server.start(lw.node):
        lw.upgrade(
            "--reset-then-reuse-values",
            values={"server": {"autoscaling": autoscaling | {"behavior": behavior}, "resources": requests}},
        )
        yield lw
        lw.helm("rollback", lw.name, revision, "--wait", "--timeout", WITHIN)


def test_servers_are_added_under_load_and_removed_after_it(scaled: Release, lake: Lake) -> None:
    for table in ("read", "write-1", "write-2"):
        lake.make_table(table)
    until(
        lambda: _servers(scaled) == FEW and _used(scaled) is not None, "the autoscaler", scaled.node, within_s=WITHIN_S
    )
    with lake.load(readers=["read"] * 4, writers=["write-1", "write-2"]) as heavy:
        until(lambda: _servers(scaled) == MANY, f"{MANY} servers", scaled.node, within_s=WITHIN_S)
    with lake.load(readers=["read"], pause_s=0.1) as light:
        until(lambda: len(scaled.pods()) == FEW, f"{FEW} servers", scaled.node, within_s=WITHIN_S)
    for told in (heavy, light):
        print(told)  # noqa: T201 a figure
        assert told.failures == []
        assert told.reads > 50


def _servers(release: Release) -> int:
    return sum(release.ready().values())


def _used(release: Release) -> int | None:
    """What the autoscaler knows: percent of the CPU that servers request."""
    found = json.loads(release.kubectl("get", "hpa", f"{release.full_name}-server", "-o", "json"))
    current: list[dict[str, Any]] = found.get("status", {}).get("currentMetrics") or []
    return next((each["resource"]["current"].get("averageUtilization") for each in current if "resource" in each), None)
