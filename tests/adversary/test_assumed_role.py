"""Objects that are created while acting as a role belong to the role: whoever leaves the role has no right on them."""

import pytest

from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger.models import Grant
from tests.integration.catalog.lake import SCHEMA, VIEW_VERSION, Lake
from tests.servers.asgi_client import AsgiClient

API = "/management/v1"
MALLORY = "oidc~mallory"


@pytest.fixture
def role(admin: AsgiClient, lake: Lake) -> str:
    """A role with the member Mallory; it may create in the warehouse, and warehouses and roles in the project."""
    assert admin.post(f"{API}/user", {"id": MALLORY, "name": "M", "user-type": "human"}).status == 201
    made = str(admin.post(f"{API}/role", {"name": "builders"}).json()["id"])
    assert admin.post(f"{API}/role/{made}/members", {"members": [{"user": MALLORY}]}).status == 200
    for path, privilege in (
        (f"warehouse/{lake.warehouse_id}", "create"),
        ("project", "create"),
        ("project", "role_creator"),
    ):
        grant = {"writes": [{"privilege": privilege, "principal": {"role": made}}]}
        assert admin.post(f"{API}/{path}/grants", grant).status == 204
    return made


def test_whatever_is_created_belongs_to_the_role(
    lake: Lake, admin: AsgiClient, role: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Rights: member of a role that may create."""
    mallory = lake.as_user("mallory").client
    as_role = AsgiClient({**mallory.headers, "x-assume-role": role})
    own = lake.namespace("own")
    profile = {"type": "local", "base-path": str(tmp_path_factory.mktemp("pond"))}
    staged = {"name": "staged", "schema": SCHEMA, "stage-create": True}
    assert as_role.post(lake.path("namespaces"), {"namespace": ["own"]}).status == 200
    table = as_role.post(f"{own}/tables", {"name": "t", "schema": SCHEMA}).json()
    view = {"name": "v", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}
    assert as_role.post(f"{own}/views", view).status == 200
    ctas = as_role.post(f"{own}/tables", staged).json()["metadata"]
    assert as_role.post(f"{own}/tables/staged", creation(ctas)).status == 200
    assert as_role.delete(f"{own}/tables/t?purgeRequested=false").status == 204
    register = {"name": "t", "metadata-location": table["metadata-location"]}
    assert as_role.post(f"{own}/register", register).status == 200
    pond = {"warehouse-name": "pond", "storage-profile": profile}
    assert as_role.post(f"{API}/warehouse", pond).status == 201
    assert as_role.post(f"{API}/role", {"name": "inner"}).status == 201
    provisioned = {"roles": [{"name": "provisioned"}]}
    assert as_role.post(f"{API}/role/provision", provisioned).status == 200

    assert not Grant.objects.filter(principal_id=MALLORY).exists()
    owned = Grant.objects.filter(principal_id=f"role:{role}", privilege="ownership")
    kinds = ["namespace", "role", "role", "table", "table", "view", "warehouse"]
    assert sorted(owned.values_list("object_type", flat=True)) == kinds
    assert set(owned.values_list("granted_by", flat=True)) == {MALLORY}
    assert set(AuditEntry.objects.filter(action="createTable").values_list("actor", "assumed_role")) == {
        (MALLORY, role)
    }

    assert admin.delete(f"{API}/role/{role}/members/user/{MALLORY}").status == 204
    for path in (own, f"{own}/tables/t", f"{own}/views/v"):
        assert (mallory.get(path).status, as_role.get(path).status) == (404, 400)


def creation(metadata: dict[str, object]) -> dict[str, object]:
    """The commit that completes a staged table."""
    return {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": SCHEMA, "last-column-id": 9},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": metadata["location"]},
        ],
    }
