"""One node for all tests, with a trial's release on it (`lw`), whose PostgreSQL has databases for other releases."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.k8s.images import POSTGRES, archives
from tests.k8s.lake import Databases, Lake
from tests.k8s.release import IMAGE, TRIAL, WITHIN, Release, apply, secret, volume
from tests.servers import kubernetes_node
from tests.servers.kubernetes_node import Node

VOLUME_MB = 512


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    with kubernetes_node.start(archives()) as started:
        yield started


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small file system, as the volume of `lw`'s warehouses."""
    folder = tmp_path_factory.mktemp("warehouses")
    options = f"size={VOLUME_MB}m,mode=0777"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "lw-warehouses", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture(scope="session")
def lw(node: Node, disk: Path) -> Release:
    """The trial, as its values are, on a volume of the test, with a database that ends with its pod."""
    release = Release(node, "lw", "default")
    common = {"accessModes": ["ReadWriteOnce"], "volumeName": "warehouses", "storageClassName": ""}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "warehouses"},
        "spec": common | {"resources": {"requests": {"storage": "1Gi"}}},
    }
    apply(release, volume("warehouses", disk, namespace="default"), claim)
    own = {"postgres": {"image": POSTGRES, "persistent": False}, "persistence": {"existingClaim": "warehouses"}}
    release.install("-f", TRIAL, values=IMAGE | own)
    return release


@pytest.fixture(scope="session")
def lake(lw: Release) -> Lake:
    token = lw.token(
        f"{lw.full_name}-test"
    )  # the user of `helm test`, who may have been the first administrator already
    status, answer = lw.ask("POST", "/management/v1/bootstrap", {"accept-terms-of-use": True}, token=token)
    assert status in {204, 400}, answer
    asked = {"warehouse-name": "k8s", "storage-profile": {"type": "local", "base-path": "/warehouses/k8s"}}
    status, answer = lw.ask("POST", "/management/v1/warehouse", asked, token=token)
    assert status == 201, answer
    found = Lake(lw, token, str(answer["id"]))
    status, answer = lw.ask("POST", f"/catalog/v1/{found.warehouse}/namespaces", {"namespace": ["ns"]}, token=token)
    assert status == 200, answer
    return found


@pytest.fixture(scope="session")
def databases(lw: Release) -> Databases:
    return Databases(lw)


@pytest.fixture
def release(databases: Databases) -> Iterator[Callable[[str], Release]]:
    """Makes a release's namespace with the Secret `database` (`url`); all of it is gone afterwards."""
    with _released(databases) as make:
        yield make


@contextmanager
def _released(databases: Databases) -> Iterator[Callable[[str], Release]]:
    made: list[Release] = []

    def make(name: str) -> Release:
        one = Release(databases.lw.node, name, name)
        one.node.kubectl("create", "namespace", name)
        made.append(one)
        secret(one, "database", url=databases.make(name))
        return one

    try:
        yield make
    finally:
        for each in made:
            if each.name in each.helm("list", "--all", "--short").split():
                each.helm("uninstall", each.name, "--wait", "--timeout", WITHIN)
            each.node.kubectl("delete", "namespace", each.name, "--wait=false")
            databases.drop(each.name)
