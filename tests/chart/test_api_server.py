"""A real API server takes every object that the chart renders, and refuses unknown fields (strict validation)."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chart.values import COMMON, objects
from tests.servers import kubernetes
from tests.servers.kubernetes import KubernetesCluster, KubernetesFailed

FOREIGN = {"monitoring.coreos.com/v1", "gateway.networking.k8s.io/v1"}
"""Of operators, which this API server does not know."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubernetesCluster]:
    with kubernetes.start() as started:
        # a pod is refused without its account
        started.create_service_account("default", "lw-lakewarden-test")
        yield started


def path_of(cluster: KubernetesCluster, version: str, kind: str) -> str:
    root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    for each in cluster.call("GET", root)["resources"]:
        if each["kind"] == kind and "/" not in each["name"]:
            return f"{root}/namespaces/default/{each['name']}" if each["namespaced"] else f"{root}/{each['name']}"
    raise AssertionError(f"{version} {kind} is not known")


def check(cluster: KubernetesCluster, manifest: dict[str, Any]) -> None:
    path = path_of(cluster, manifest["apiVersion"], manifest["kind"])
    try:
        cluster.call("POST", f"{path}?dryRun=All&fieldValidation=Strict", manifest)
    except KubernetesFailed as error:
        if "AlreadyExists" not in str(error):  # the account above, which was valid then
            raise


@pytest.mark.parametrize("values", COMMON, ids=lambda path: path.stem)
def test_every_object_is_valid(cluster: KubernetesCluster, values: Any) -> None:
    manifests = objects(values)
    assert len(manifests) > 10
    for each in manifests:
        if each["apiVersion"] not in FOREIGN:
            check(cluster, each)


def test_an_unknown_field_is_noticed(cluster: KubernetesCluster) -> None:
    manifest = next(each for each in objects(COMMON[0]) if each["kind"] == "Deployment")
    manifest["spec"]["replicaz"] = 3
    with pytest.raises(KubernetesFailed, match="replicaz"):
        check(cluster, manifest)
