"""A release on a real node: install, `helm test`, upgrade and rollback under load, uninstall.

The node has containerd, runc, a kubelet and kube-proxy; the image is the project's own.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.k8s.images import POSTGRES, archives
from tests.servers import kubernetes_node
from tests.servers.helm import CHART, ROOT, helm
from tests.servers.kubernetes_node import Node

RELEASE = "lw"
WITHIN = "300s"
OWN = {
    "image": {"repository": "localhost/lakewarden", "pullPolicy": "Never"},
    "postgres": {"image": POSTGRES, "persistent": False},
    "persistence": {"existingClaim": "warehouses"},
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("warehouses")
    folder.chmod(0o777)
    with kubernetes_node.start(archives()) as started:
        volume = folder / "volume.yaml"
        volume.write_text(yaml.safe_dump_all(_volume(folder)))
        started.kubectl("apply", "-f", str(volume))
        yield started


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("values") / "values.yaml"
    path.write_text(yaml.safe_dump(OWN))
    return path


@pytest.fixture(scope="module")
def installed(node: Node, values: Path) -> Node:
    _helm(node, "install", RELEASE, CHART, *_files(values), "--wait", "--timeout", WITHIN)
    return node


@pytest.mark.timeout(1800)
def test_pods_are_ready_and_restricted(installed: Node) -> None:
    pods = installed.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].ready}").split()
    assert pods == ["true"] * 4  # two servers, a worker, PostgreSQL
    script = "id -u; grep CapEff /proc/1/status; touch /written 2>&1; true"
    said = _exec(installed, "sh", "-c", script)
    assert said.splitlines()[0] == "65532"
    assert "0000000000000000" in said
    assert "Read-only file system" in said


@pytest.mark.timeout(1800)
def test_a_service_account_signs_in_and_keeps_a_table(installed: Node) -> None:
    """`helm test`: its pod's token is reviewed by the API server; a changed one is refused."""
    for _ in range(2):
        said = _helm(installed, "test", RELEASE, "--logs", "--timeout", WITHIN)
        assert "401 with a token that was changed" in said
        assert "200 with the token of this pod's service account" in said
        assert "200 commit" in said


@pytest.mark.timeout(1800)
def test_metrics_are_answered_in_the_cluster_only(installed: Node) -> None:
    for component, metric in (("server", "lakewarden_processes_ready 1.0"), ("worker", "lakewarden_workers 1.0")):
        selector = f"app.kubernetes.io/component={component}"
        address = installed.kubectl("get", "pod", "-l", selector, "-o", "jsonpath={.items[0].status.podIP}")
        assert metric in installed.run("curl", "-sf", f"http://{address}:9191/metrics")
    assert "9191" not in installed.kubectl("get", "service", f"{RELEASE}-lakewarden", "-o", "yaml")


@pytest.mark.timeout(1800)
def test_upgrade_and_rollback_lose_no_request(installed: Node, values: Path) -> None:
    before = _pods(installed)
    with _load(installed) as found:
        changed = ("--set", "config.log.level=DEBUG")
        _helm(installed, "upgrade", RELEASE, CHART, *_files(values), *changed, "--wait", "--timeout", WITHIN)
        upgraded = _pods(installed)
        _helm(installed, "rollback", RELEASE, "1", "--wait", "--timeout", WITHIN)
    assert not before & upgraded
    assert not upgraded & _pods(installed)
    answered, *failures = found
    assert failures == []
    assert int(answered) > 100
    print(f"{answered} requests were answered during an upgrade and a rollback, none failed")  # noqa: T201 a figure


@pytest.mark.timeout(1800)
def test_an_unmigrated_or_missing_database_is_said(installed: Node, values: Path) -> None:
    """A pod whose Secret is missing does not start, and says its name; the running release goes on."""
    name = "other"
    own = ("--set", "postgres.enabled=false", "--set", "persistence.enabled=false", "--set", "migrations.mode=none")
    missing = ("--set-json", 'secretRefs={"database.url":{"name":"nowhere","key":"url"}}')
    _helm(installed, "install", name, CHART, *_files(values), *own, *missing)
    selector = f"app.kubernetes.io/instance={name},app.kubernetes.io/component=server"
    kubernetes_node.until(
        lambda: 'secret "nowhere" not found' in installed.kubectl("get", "pods", "-l", selector, "-o", "yaml"),
        "the sentence of the kubelet",
        installed,
    )
    _helm(installed, "uninstall", name, "--wait", "--timeout", WITHIN)


@pytest.mark.timeout(1800)
def test_uninstall_leaves_nothing(installed: Node) -> None:
    _helm(installed, "uninstall", RELEASE, "--wait", "--timeout", WITHIN)
    kinds = "deployments,statefulsets,pods,services,secrets,configmaps,serviceaccounts,jobs,pdb,clusterrolebindings"
    left = installed.kubectl("get", kinds, "-l", f"app.kubernetes.io/instance={RELEASE}", "-o", "name").split()
    # what `helm test` ran stays until its next run, so that its log can be read
    assert set(left) <= {f"pod/{RELEASE}-lakewarden-test", f"configmap/{RELEASE}-lakewarden-test"}


def _files(values: Path) -> list[str | Path]:
    return ["-f", CHART / "values" / "trial.yaml", "-f", values]


def _helm(node: Node, *arguments: str | Path) -> str:
    return helm(*arguments, "--kubeconfig", node.kubeconfig, enter=node.enter)


def _exec(node: Node, *command: str) -> str:
    return node.kubectl("exec", f"deploy/{RELEASE}-lakewarden-server", "-c", "lakewarden", "--", *command)


def _pods(node: Node) -> set[str]:
    """The names of the servers that are to stay."""
    selector = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component=server"
    items = json.loads(node.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
    return {each["metadata"]["name"] for each in items if "deletionTimestamp" not in each["metadata"]}


@contextmanager
def _load(node: Node) -> Iterator[list[str]]:
    """Requests through the service's address while it is open; afterwards the lines of `load.main`."""
    address = node.kubectl("get", "service", f"{RELEASE}-lakewarden", "-o", "jsonpath={.spec.clusterIP}")
    token = node.kubectl(
        "create", "token", f"{RELEASE}-lakewarden-test", "--audience", "lakewarden", "--duration", "1h"
    )
    path = "/catalog/v1/config?warehouse=helm-test"
    command = [*node.enter, sys.executable, "-m", "tests.k8s.load", address, "80", path, token.strip(), "900"]
    found: list[str] = []
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
        try:
            yield found
        finally:
            said, _ = load.communicate(timeout=60)
            found += said.splitlines()


def _volume(folder: Path) -> list[dict[str, Any]]:
    """A volume on the node: nothing here makes volumes on demand."""
    common: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    size = {"storage": "1Gi"}
    host = {"path": str(folder)}
    volume: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "warehouses"}}
    claim: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "warehouses"}}
    return [
        volume | {"spec": common | {"capacity": size, "hostPath": host}},
        claim | {"spec": common | {"volumeName": "warehouses", "resources": {"requests": size}}},
    ]
