"""Credentials for files are as strong as the rights that their receiver has after the call."""

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from catalog.access import namespace_chain
from catalog.models import Namespace
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId, RequestContext
from lakewarden.storage.profiles import PROFILES
from tenants.models import Warehouse
from tests.contracts.storage.bucket import OBJECTS
from tests.contracts.storage.vending_bucket import Keys, VendingProfile
from tests.installation import ADMIN
from tests.integration.catalog.bucket_warehouse import made
from tests.integration.catalog.lake import Lake, identifier
from tests.integration.catalog.registering import register
from tests.servers.asgi_client import Answer, AsgiClient


@pytest.fixture
def warehouse(admin: AsgiClient, admin_context: RequestContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """On an object store that issues credentials, instead of the one in a directory."""
    monkeypatch.setattr(VendingProfile, "KEYS", Keys(), raising=False)
    monkeypatch.setitem(PROFILES, "bucket", VendingProfile)
    yield made(admin_context, "lake")
    OBJECTS.clear()


@pytest.fixture
def mallory(lake: Lake) -> Lake:
    """A user who may create in `sales`, and sees nothing of others there."""
    sales = Namespace.objects.select_related("warehouse__project").get(path=["sales"])
    ledger.give(namespace_chain(sales), [(PrincipalId("oidc~mallory"), Privilege.CREATE)], granted_by=ADMIN)
    return lake.as_user("mallory")


def test_registering_anothers_dropped_table_wins_no_credentials_for_its_files(lake: Lake, mallory: Lake) -> None:
    """Rights: create in `sales`; the table stays its owner's when it comes back."""
    file = lake.create_table("orders").json()["metadata-location"]
    assert lake.client.delete(lake.table("orders", purgeRequested="false")).status == 204
    back = register(mallory, "orders", file)
    assert back.status == 200
    assert back.json()["config"] == {}
    assert mallory.client.get(mallory.table("orders", "credentials")).status == 403


def test_who_registers_their_own_table_again_may_write_it(mallory: Lake) -> None:
    file = mallory.create_table("orders").json()["metadata-location"]
    assert mallory.client.delete(mallory.table("orders", purgeRequested="false")).status == 204
    (credential,) = register(mallory, "orders", file).json()["storage-credentials"]
    assert credential["config"]["bucket.key"].startswith("write ")


def credentials_in(answer: Answer) -> list[str]:
    """What they reach, as level and location."""
    return [each["config"]["bucket.key"] for each in answer.json().get("storage-credentials", [])]


def test_a_place_with_files_of_nobody_known_wins_no_credentials(
    lake: Lake, mallory: Lake, warehouse: Warehouse
) -> None:
    """Rights: create in `sales`; the files were there before the catalog."""
    place = f"{warehouse.location}/older/data"
    warehouse.profile.open(None).write_new(f"{place}/secret", b"secret")
    for location in (
        place,
        f"{place}/",
        place.rpartition("/")[0],
        f"{place}/secret",
        place.replace("bucket", "bucketa", 1),
    ):
        for staged in (False, True):
            answer = mallory.create_table("mine", location=location, stage_create=staged)
            assert answer.status in {400, 409}, (location, answer.body)
            assert "storage-credentials" not in answer.json()


@pytest.mark.parametrize("purge", ["false", "true"])
def test_a_place_of_a_dropped_table_wins_no_credentials(lake: Lake, mallory: Lake, purge: str) -> None:
    """Rights: create in `sales`."""
    place = lake.create_table("orders").json()["metadata"]["location"]
    assert lake.client.delete(lake.table("orders", purgeRequested=purge)).status == 204
    for location in (place, f"{place}/data", place.rpartition("/")[0]):
        for staged in (False, True):
            answer = mallory.create_table("mine", location=location, stage_create=staged)
            assert answer.status in {400, 409, 503}, (location, answer.body)  # 503 while files are removed


def test_an_own_table_is_not_moved_onto_the_files_of_others(lake: Lake, mallory: Lake) -> None:
    """Rights: owns a table in `sales`."""
    theirs = lake.create_table("orders").json()["metadata"]["location"]
    own = mallory.create_table("mine").json()["metadata"]["location"]
    for location in (theirs, f"{theirs}/data", theirs.rpartition("/")[0], f"{own}/../{theirs.rpartition('/')[2]}"):
        moved = mallory.commit("mine", {"action": "set-location", "location": location})
        assert moved.status in {400, 409}, (location, moved.body)
        assert credentials_in(mallory.client.get(mallory.table("mine"))) == [f"write {own}"]
    free = f"{own.rpartition('/')[0]}/free"
    assert mallory.commit("mine", {"action": "set-location", "location": free}).status == 200
    for path in (mallory.table("mine"), mallory.table("mine", "credentials")):
        assert credentials_in(mallory.client.get(path)) == [f"write {free}"]


def test_forged_metadata_wins_no_credentials_for_another_place(lake: Lake, mallory: Lake, warehouse: Warehouse) -> None:
    """Rights: owned a table in `sales`, and could write any file at its location, with its credentials."""
    theirs = lake.create_table("orders").json()["metadata"]["location"]
    made = mallory.create_table("mine").json()
    own = made["metadata"]["location"]
    assert mallory.client.delete(mallory.table("mine", purgeRequested="false")).status == 204
    for number, location in enumerate((theirs, theirs.rpartition("/")[0], f"{own}/../{theirs.rpartition('/')[2]}")):
        file = f"{own}/metadata/forged-{number}.metadata.json"
        forged = {**made["metadata"], "location": location, "table-uuid": str(uuid4())}
        warehouse.profile.open(None).write_new(file, json.dumps(forged).encode())
        for overwrite in (False, True):
            body = {"name": "mine", "metadata-location": file, "overwrite": overwrite}
            answer = mallory.client.post(mallory.namespace("sales", "register"), body)
            assert answer.status >= 400, (location, answer.body)
            assert "storage-credentials" not in answer.json()


def test_names_that_lead_to_a_table_no_more_win_nothing(lake: Lake, reader: Lake) -> None:
    """Rights: select on `orders`, which is renamed, then dropped."""
    assert [each.partition(" ")[0] for each in credentials_in(reader.client.get(reader.table("orders")))] == ["read"]
    body = {"source": identifier("orders"), "destination": identifier("renamed")}
    assert lake.client.post(lake.path("tables", "rename"), body).status == 204
    assert reader.client.get(reader.table("orders", "credentials")).status == 404
    assert credentials_in(reader.client.get(reader.table("renamed", "credentials")))[0].startswith("read ")
    asked = len(VendingProfile.KEYS.asked)
    assert lake.client.delete(lake.table("renamed", purgeRequested="false")).status == 204
    for name in ("orders", "renamed"):
        assert reader.client.get(reader.table(name, "credentials")).status == 404
        assert lake.client.get(lake.table(name, "credentials")).status == 404
    assert len(VendingProfile.KEYS.asked) == asked


@pytest.mark.parametrize("more", [{"write": "true"}, {"level": "write"}, {"planId": "x"}, {"referenced-by": "v"}])
def test_a_reader_is_given_no_more_by_asking(reader: Lake, more: dict[str, str]) -> None:
    """Rights: select on `orders`."""
    wanted = {"x-iceberg-access-delegation": "vended-credentials, write, read-write", "x-iceberg-access-level": "write"}
    for path in (reader.table("orders", **more), reader.table("orders", "credentials", **more)):
        answer = reader.client.get(path, headers=wanted)
        assert [each.partition(" ")[0] for each in credentials_in(answer)] == ["read"]
    for staged in (False, True):
        taken = reader.create_table("orders", stage_create=staged)
        assert taken.status in {403, 409}
        assert "storage-credentials" not in taken.json()


def test_views_have_no_credentials_by_any_route(lake: Lake, mallory: Lake) -> None:
    """Rights: owns a view, whose location holds files that engines do not use."""
    made = mallory.create_view("seen")
    assert made.status == 200, made.body
    assert made.json().get("config", {}) == {}
    assert "storage-credentials" not in mallory.client.get(mallory.view("seen")).json()
    assert mallory.client.get(mallory.table("seen", "credentials")).status == 404
    assert mallory.client.get(mallory.generic("seen", "credentials")).status in {404, 405}


def test_a_generic_table_wins_no_credentials_for_the_place_of_a_table(lake: Lake, mallory: Lake) -> None:
    """Rights: create in `sales`."""
    theirs = lake.create_table("orders").json()["metadata"]["location"]
    for location in (theirs, f"{theirs}/data", theirs.rpartition("/")[0]):
        answer = mallory.create_generic("mine", base_location=location)
        assert answer.status in {400, 409}, answer.body
    assert mallory.client.get(mallory.generic("orders", "credentials")).status == 404
