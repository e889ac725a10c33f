"""The catalog on blob storage and on Google's: tables live there from their creation to their purge."""

from collections.abc import Callable
from typing import Any

import pytest

from lakewarden import backends
from lakewarden.db_transaction import changing
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientRoutes
from lakewarden.storage.interface import Storage, StorageError
from tenants.models import Warehouse
from tenants.services import warehouse_secrets
from tests.contracts.storage import clouds
from tests.contracts.storage.clouds import azurite, fake_gcs
from tests.installation import admin, admin_context, client, warehouse
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.tasks.purges import run, sql
from tests.servers.asgi_client import Answer, AsgiClient

__all__ = ["admin", "admin_context", "azurite", "client", "fake_gcs", "warehouse"]

Use = Callable[[], object]


@pytest.fixture(params=["adls", "gcs"])
def place(request: pytest.FixtureRequest) -> dict[str, Any]:
    return getattr(clouds, request.param)(request)  # type: ignore[no-any-return]


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse, place: dict[str, Any]) -> Lake:
    profile = place["profile"]
    with warehouse_secrets.kept(place["credential"]) as kept, changing():
        warehouse.storage_profile, warehouse.location = profile.dump(), profile.location
        warehouse.storage_secret = kept.reference
        warehouse.save()
    found = Lake(admin, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


@pytest.fixture
def store(place: dict[str, Any]) -> Storage:
    return backends.storage(place["profile"], place["credential"])


def files(store: Storage, location: str) -> list[str]:
    return [each.path for each in store.survey(location, within=location.rpartition("/")[0])]


def test_a_table_lives_there_until_its_purge(lake: Lake, place: dict[str, Any], store: Storage) -> None:
    created = lake.create_table("orders")
    assert created.status == 200, created.json()
    location = created.json()["metadata"]["location"]
    assert location.startswith(f"{place['profile'].location}/")
    for color in ("red", "blue"):
        assert lake.commit("orders", set_properties(color=color)).status == 200
    assert len(files(store, location)) == 3
    # what an engine writes
    store.write_new(f"{location}/data/day=1/a b.parquet", b"rows")
    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 204
    for (task,) in sql("select id from task where outcome is null and queue_name = 'tabular_purge'"):
        run(task)
    assert files(store, location) == []


def test_a_table_comes_in_with_its_metadata_file(lake: Lake) -> None:
    created = lake.create_table("orders").json()
    left = created["metadata-location"]
    assert lake.client.delete(lake.table("orders")).status == 204

    def register(file: str) -> Answer:
        return lake.client.post(lake.namespace("sales", "register"), {"name": "again", "metadata-location": file})

    gone = left.replace("00000-", "00009-")
    refused = register(gone)
    assert (refused.status, gone in refused.json()["error"]["message"]) == (400, True)
    answer = register(left)
    assert answer.status == 200, answer.json()
    assert answer.json()["metadata"]["table-uuid"] == created["metadata"]["table-uuid"]


def test_an_engine_with_what_it_received_uses_the_store(place: dict[str, Any], store: Storage) -> None:
    """As far as emulators know it: Azurite refuses each signature for a folder, and the other one accepts all tokens."""
    profile = place["profile"]
    routes = ClientRoutes("http://catalog", "v1/credentials", "v1/sign")
    asked = AccessRequest(f"{profile.location}/t", AccessLevel.WRITE, frozenset(), routes)
    engine = profile.open_as_engine(store.client_access(asked))
    uses: list[Use] = [
        lambda: engine.write_new(f"{profile.location}/t/f", b"x"),
        lambda: engine.is_empty(f"{profile.location}/t"),
    ]
    for use in uses:
        if profile.type == "gcs":
            use()
        else:
            with pytest.raises(StorageError, match=r"AuthorizationFailure|AuthenticationFailed"):
                use()
