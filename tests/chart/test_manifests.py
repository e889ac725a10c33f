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


def with_executors(tmp_path: Path, **executors: object) -> list[dict[str, Any]]:
    """The objects of a release whose pipeline has executors in pods of their own, and whose pods may not call others."""
    change = {
        "config": {"pipeline": PIPELINE},
        "secretRefs": {"pipeline.client_secret": {"name": "p", "key": "s"}},
        "pipeline": {"enabled": True, "master": "kubernetes", "executors": executors},
        "networkPolicy": {"enabled": True, "egress": [{"ports": [{"port": 5432}]}]},
    }
    own = tmp_path / "values.yaml"
    own.write_text(yaml.safe_dump(merged(GOOD, change)))
    return objects(own)


def test_executors_are_as_restricted_as_other_pods_and_have_no_account(tmp_path: Path) -> None:
    manifests = with_executors(tmp_path, nodeSelector={"disk": "fast"}, podLabels={"team": "lake"})
    templates = [each["data"].get("executor.yaml") for each in manifests if each["kind"] == "ConfigMap"]
    (pod,) = [yaml.safe_load(each) for each in templates if each]
    assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "executor"
    assert pod["metadata"]["labels"]["team"] == "lake"
    spec = pod["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["nodeSelector"] == {"disk": "fast"}
    assert spec["securityContext"]["runAsNonRoot"] is True
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert "env" not in container
    (role,) = [each for each in manifests if each["kind"] == "Role"]
    assert [each["resources"] for each in role["rules"]] == [["pods"]]


def test_driver_and_executors_reach_each_other_though_nobody_else_does(tmp_path: Path) -> None:
    policies = {
        each["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: each["spec"]
        for each in with_executors(tmp_path)
        if each["kind"] == "NetworkPolicy"
    }

    def opened(rules: list[dict[str, Any]], peers: str) -> set[tuple[str, int]]:
        return {
            (peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"], port["port"])
            for rule in rules
            for peer in rule.get(peers, [])
            for port in rule["ports"]
        }

    to_driver = {("executor", 7078), ("executor", 7079)}
    assert opened(policies["pipeline"]["ingress"], "from") == to_driver
    assert opened(policies["pipeline"]["egress"], "to") == {("executor", 7079)}
    assert opened(policies["executor"]["ingress"], "from") == {("executor", 7079), ("pipeline", 7079)}
    assert opened(policies["executor"]["egress"], "to") == to_driver | {("pipeline", 7078), ("pipeline", 7079)}
    assert {"ports": [{"port": 5432}]} in policies["executor"]["egress"]


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
