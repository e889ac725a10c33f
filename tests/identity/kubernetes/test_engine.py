"""An engine in a pod: PyIceberg with the token of its service account."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, RESTError

from standalone.commands import AUDIENCE
from tests.identity.kubernetes.lane import NAMESPACE, user_of
from tests.servers.kubernetes import KubernetesCluster, ServiceAccount
from tests.servers.lakewarden_serve import LakewardenServer

pytestmark = pytest.mark.timeout(func_only=True)


@dataclass(frozen=True)
class Administrator:
    """Who calls the management API: the holder of `token`."""

    server: LakewardenServer
    token: str

    def post(self, path: str, body: Mapping[str, Any]) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = requests.post(f"{self.server.management_uri}/v1{path}", json=body, headers=headers, timeout=20)
        assert answer.ok, answer.text
        return answer

    def grant(self, warehouse_id: str, privilege: str, account: ServiceAccount) -> None:
        entry = {"privilege": privilege, "principal": {"user": f"kubernetes~{account.uid}"}}
        self.post(f"/warehouse/{warehouse_id}/grants", {"writes": [entry]})


@pytest.fixture(scope="module")
def admin(by_review: LakewardenServer, cluster: KubernetesCluster) -> Administrator:
    """A service account that is the server's administrator."""
    account = cluster.create_service_account(NAMESPACE, "administrator")
    by_review.bootstrap(f"kubernetes~{account.uid}")
    return Administrator(by_review, cluster.token(account, audience=AUDIENCE))


@pytest.fixture(scope="module")
def warehouse_id(admin: Administrator) -> str:
    """The warehouse `pods`, which holds the namespace `sales`."""
    profile = {"type": "local", "base-path": str(admin.server.local_root / "pods")}
    found = admin.post("/warehouse", {"warehouse-name": "pods", "storage-profile": profile}).json()["id"]
    engine(admin.server, admin.token).create_namespace("sales")
    return str(found)


def engine(server: LakewardenServer, token: str) -> Catalog:
    return RestCatalog("pods", uri=server.catalog_uri, warehouse="pods", token=token)


def test_pyiceberg_lists_namespaces_of_a_warehouse_granted_to_its_account(
    admin: Administrator, warehouse_id: str, reader: ServiceAccount, token: str
) -> None:
    user_of(admin.server, token)  # grants are for users that are known
    admin.grant(warehouse_id, "select", reader)
    pod = engine(admin.server, token)
    assert pod.list_namespaces() == [("sales",)]
    with pytest.raises(ForbiddenError):
        pod.create_namespace("more")


def test_pyiceberg_of_an_account_without_grants_does_not_find_the_warehouse(
    admin: Administrator, warehouse_id: str, token: str
) -> None:
    with pytest.raises(RESTError, match="pods"):
        engine(admin.server, token)
