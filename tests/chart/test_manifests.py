"""What `helm template` renders: settings arrive as the server reads them, and pods are as restricted as they can be."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewarden.config import read
from tests.chart.values import COMMON, GOOD, PIPELINE, merged, objects
from tests.servers.helm import CHART, helm


def pods(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [each["spec"]["template"]["spec"] for each in manifests if "template" in each.get("spec", {})]
    return found + [each["spec"] for each in manifests if each["kind"] == "Pod"]


def variables(container: dict[str, Any]) -> dict[str, str]:
    """The container's variables; one from a Secret has the value that a test gives it."""
    secret = {"LAKEWARDEN__SECRETS__KEYS": "a:" + "QWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="}
    return {
        each["name"]: each.get("value", secret.get(each["name"], "postgresql://a:b@c/d"))
        for each in container.get("env", [])
    }


@pytest.mark.parametrize("values", COMMON, ids=lambda path: path.stem)
def test_common_values_are_a_configuration_that_the_server_accepts(values: Path) -> None:
    containers = [each for pod in pods(objects(values)) for each in pod["containers"] if each["name"] == "lakewarden"]
    assert containers
    for container in containers:
        read(variables(container))


@pytest.mark.parametrize("values", COMMON, ids=lambda path: path.stem)
def test_every_pod_is_restricted(values: Path) -> None:
    for pod in pods(objects(values)):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context.get("readOnlyRootFilesystem") is True or container["name"] == "postgres"
            assert container["resources"]["limits"]["memory"]


def test_settings_of_all_kinds_arrive(tmp_path: Path) -> None:
    own = tmp_path / "values.yaml"
    spark = {"spark.sql.shuffle.partitions": "8"}
    change = {
        "config": {
            "server": {"max_body_bytes": 33554432, "trusted_proxies": ["10.0.0.0/8", "10.1.0.1"]},
            "events": {"sinks": {"lake": {"log": {"enabled": True}}}},
            "pipeline": PIPELINE | {"spark": spark},
        },
        "secretRefs": {"pipeline.client_secret": {"name": "p", "key": "s"}},
        "pipeline": {"enabled": True, "master": "kubernetes"},
    }
    own.write_text(yaml.safe_dump(merged(GOOD, change)))
    of = {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: variables(
            each["spec"]["template"]["spec"]["containers"][0]
        )
        for each in objects(own)
        if each["kind"] == "Deployment"
    }
    server = read(of["server"])
    assert server.server.max_body_bytes == 33554432
    assert server.server.trusted_proxies == ("10.0.0.0/8", "10.1.0.1")
    assert server.events.sinks["lake"].log is not None
    assert "LAKEWARDEN__PIPELINE__CLIENT_SECRET" not in of["server"]
    pipeline = read(of["pipeline"]).pipeline
    assert pipeline.spark["spark.sql.shuffle.partitions"] == "8"
    assert pipeline.spark["spark.driver.host"] == "$(POD_IP)"
    assert pipeline.master == "k8s://https://kubernetes.default.svc"
    assert not any(name.startswith("LAKEWARDEN__KUBERNETES") for name in of["pipeline"])


def test_an_upgrade_never_has_fewer_servers_and_leaves_requests_their_time() -> None:
    manifests = objects(CHART / "values" / "production-aws.yaml")
    (server,) = [
        each for each in manifests if each["kind"] == "Deployment" and each["metadata"]["name"].endswith("server")
    ]
    assert server["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    pod = server["spec"]["template"]["spec"]
    sleep = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    stop = read(variables(pod["containers"][0])).server.stop_timeout_s
    assert pod["terminationGracePeriodSeconds"] >= sleep + stop + 6
    assert "replicas" not in server["spec"]  # the autoscaler's


def test_lint_finds_nothing() -> None:
    for values in COMMON:
        helm("lint", "--strict", CHART, "-f", values)
