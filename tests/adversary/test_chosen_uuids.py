"""A uuid that a client chose carries nothing: no right, protection, task or place of whoever has the same one."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connections

from catalog.access import namespace_chain
from catalog.models import Namespace, Tabular
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.observed import local
from tests.integration.catalog.registering import register
from tests.integration.catalog.staged import commit_staged
from tests.servers.asgi_client import AsgiClient

API = "/management/v1"


@pytest.fixture
def uuid(lake: Lake) -> str:
    """That of the victim's table `sales.orders`."""
    return str(lake.create_table("orders").json()["metadata"]["table-uuid"])


@pytest.fixture
def mallory(lake: Lake, admin: AsgiClient, tmp_path: Path) -> Lake:
    """The warehouse of a project in which the outsider may do everything."""
    other = {"x-project-id": "other"}
    assert admin.post(f"{API}/project", {"project-name": "Other", "project-id": "other"}).status == 201
    assert lake.as_user("mallory").client.get(f"{API}/whoami").status == 200
    entry = {"privilege": "project_admin", "principal": {"user": "oidc~mallory"}}
    assert admin.post(f"{API}/project/grants", {"writes": [entry]}, headers=other).status == 204
    client = AsgiClient({**lake.as_user("mallory").client.headers, **other})
    body = {"warehouse-name": "own", "storage-profile": {"type": "local", "base-path": str(tmp_path / "own")}}
    own = Lake(client, client.post(f"{API}/warehouse", body).json()["id"])
    assert own.create_namespace("sales").status == 200
    return own


def forged(who: Lake, uuid: str, *, within: str = "sales", kind: str = "table") -> str:
    """The metadata file of a table of one's own, dropped meanwhile, with the uuid of another's in it."""
    create = who.create_table if kind == "table" else who.create_view
    file = create("bait", within=within).json()["metadata-location"]
    path = who.path("namespaces", within, f"{kind}s", "bait")
    assert who.client.delete(path + "?purgeRequested=false").status == 204
    metadata = json.loads(local(file).read_bytes())
    local(file).write_text(json.dumps({**metadata, f"{kind}-uuid": uuid}))
    return str(file)


def protection(who: Lake, uuid: str) -> str:
    return f"{API}/warehouse/{who.warehouse_id}/table/{uuid}/protection"


def test_the_uuid_of_a_table_that_one_may_not_see_is_refused_without_a_word_of_it(
    lake: Lake, outsider: Lake, uuid: str
) -> None:
    """Rights: create in one namespace of the victim's warehouse."""
    file = forged(outsider, uuid, within="outside")
    refused = register(outsider, "mine", file, within="outside")
    assert refused.error() == (409, "AlreadyExistsException")
    assert uuid in refused.message()
    assert "orders" not in refused.message()
    assert "sales" not in refused.message()
    staged = outsider.create_table("mine", within="outside", stage_create=True).json()
    staged["metadata"]["table-uuid"] = uuid
    assert commit_staged(outsider, "mine", staged, within="outside").error() == (409, "AlreadyExistsException")
    assert "table sales.orders" in register(lake, "copy", file, within="outside").message()
    assert list(Tabular.everything.values_list("name", flat=True)) == ["orders"]


def test_a_view_with_the_uuid_of_a_table_is_refused(lake: Lake, uuid: str) -> None:
    """Rights: create in the victim's warehouse."""
    file = forged(lake, uuid, kind="view")
    body = {"name": "mine", "metadata-location": file}
    assert lake.client.post(lake.namespace("sales", "register-view"), body).status == 409


def test_the_uuid_of_a_table_that_can_be_restored_stays_its_own(lake: Lake, admin: AsgiClient, uuid: str) -> None:
    """Rights: create in the victim's warehouse."""
    place = f"{API}/warehouse/{lake.warehouse_id}"
    file = forged(lake, uuid)
    profile = {"delete-profile": {"type": "soft", "expiration-seconds": 3600}}
    assert admin.post(f"{place}/delete-profile", profile).status == 200
    assert lake.client.delete(lake.table("orders")).status == 204
    refused = register(lake, "mine", file)
    assert refused.error() == (409, "AlreadyExistsException")
    assert "was dropped" in refused.message()
    targets = {"targets": [{"type": "table", "id": uuid}]}
    assert admin.post(f"{place}/deleted-tabulars/undrop", targets).status == 204


def test_in_another_project_it_is_a_table_of_its_own(
    lake: Lake, reader: Lake, mallory: Lake, admin: AsgiClient
) -> None:
    """Rights: everything in a project of one's own; the uuid of a table of another project."""
    uuid = lake.load("orders")["metadata"]["table-uuid"]
    assert admin.post(protection(lake, uuid), {"protected": True, "reason": "theirs"}).status == 200
    assert register(mallory, "orders", forged(mallory, uuid)).status == 200

    assert mallory.client.get(protection(mallory, uuid)).json()["protected"] is False
    assert mallory.client.get(protection(lake, uuid)).status == 404
    for path in ("grants", "actions", "explanation?action=read_data"):
        assert mallory.client.get(f"{API}/warehouse/{lake.warehouse_id}/table/{uuid}/{path}").status == 404
    entry = {"privilege": "select", "principal": {"user": "oidc~mallory"}}
    grants = f"{API}/warehouse/{mallory.warehouse_id}/table/{uuid}/grants"
    assert mallory.client.post(grants, {"writes": [entry]}).status == 204
    about = {"action": "read_data", "warehouse-id": lake.warehouse_id, "table-id": uuid}
    checked = mallory.client.post(f"{API}/action/batch-check", {"checks": [{"operation": {"table": about}}]})
    assert checked.json() == {"results": [{"allowed": False}]}
    assert Lake(mallory.client, lake.warehouse_id).client.get(lake.table("orders")).status == 404
    # nor does whoever has rights on the victim's hold any on the copy
    assert reader.client.get(lake.table("orders")).status == 200
    assert reader.client.get(mallory.table("orders")).status == 404

    assert mallory.client.delete(mallory.table("orders")).status == 204
    assert reader.client.get(lake.table("orders")).status == 200
    assert admin.get(protection(lake, uuid)).json()["protected"] is True


def test_what_was_granted_before_it_was_dropped_for_good_does_not_come_back(lake: Lake, reader: Lake) -> None:
    """Rights: select on a table that is dropped; somebody else registers its file again."""
    told = lake.load("orders")
    assert reader.client.get(lake.table("orders")).status == 200
    assert lake.client.delete(lake.table("orders", purgeRequested="false")).status == 204
    assert register(lake, "orders", told["metadata-location"]).status == 200
    assert lake.load("orders")["metadata"]["table-uuid"] == told["metadata"]["table-uuid"]
    assert reader.client.get(lake.table("orders")).status == 404


def test_a_copy_that_was_read_before_is_not_taken_for_the_new_one(lake: Lake) -> None:
    """Rights: create in the warehouse. Both are version 1 with one uuid: a cache must not confuse them."""
    first = lake.create_table("orders", properties={"who": "first"}).json()
    tag = lake.client.get(lake.table("orders")).headers["etag"]
    assert lake.client.delete(lake.table("orders", purgeRequested="false")).status == 204
    file = local(first["metadata-location"])
    metadata = json.loads(file.read_bytes())
    other = file.with_name(f"00001-{uuid4()}.metadata.json")
    other.write_text(json.dumps({**metadata, "properties": {"who": "second"}}))
    assert register(lake, "orders", f"file://{other}").status == 200
    again = lake.client.get(lake.table("orders"), headers={"if-none-match": tag})
    assert again.status == 200
    assert again.json()["metadata"]["properties"] == {"who": "second"}


def test_the_id_of_a_namespace_as_uuid_brings_no_right_on_it(lake: Lake, admin: AsgiClient) -> None:
    """Rights: create in `outside`; the attacker owns a table whose uuid is the id of the namespace `sales`."""
    assert lake.create_namespace("outside").status == 200
    outside, sales = (
        Namespace.objects.select_related("warehouse__project").get(path=[name]) for name in ("outside", "sales")
    )
    ledger.give(namespace_chain(outside), [(PrincipalId("oidc~outsider"), Privilege.CREATE)], granted_by=ADMIN)
    outsider = lake.as_user("outsider")
    assert lake.create_table("secret").status == 200
    assert register(outsider, "mine", forged(outsider, str(sales.id), within="outside"), within="outside").status == 200
    assert outsider.client.get(lake.namespace("sales")).status == 404
    assert outsider.client.get(lake.table("secret")).status == 404
    place = f"{API}/warehouse/{lake.warehouse_id}"
    assert outsider.client.get(f"{place}/namespace/{sales.id}/protection").status == 404
    found = admin.post(f"{place}/search-tabular", {"search": str(sales.id)}).json()["tabulars"]
    assert {each["tabular-name"] for each in found} == {"mine", "secret"}


def test_one_that_is_registered_several_times_at_once_has_one_table(lake: Lake) -> None:
    """Rights: create in the warehouse."""

    def registered(name: str, file: str) -> int:
        try:
            return register(lake, name, file).status
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        for turn in range(4):
            uuid = str(uuid4())
            names = [f"t{turn}{at}" for at in range(3)]
            files = [forged(lake, uuid) for _ in names]
            assert sorted(pool.map(registered, names, files)) == [200, 409, 409]
            assert Tabular.everything.filter(uuid=uuid).count() == 1
