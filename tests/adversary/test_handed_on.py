"""Moving or registering another user's table gives nobody more rights on it: neither the caller nor an accomplice."""

import pytest

from catalog.access import namespace_chain, tabular_chain
from catalog.models import Namespace, Tabular
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants.models import Warehouse
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake, identifier
from tests.servers.asgi_client import Answer, AsgiClient

API = "/management/v1"
MALLORY, THIRD = "oidc~mallory", "oidc~third"


@pytest.fixture
def mallory(lake: Lake, admin: AsgiClient) -> Lake:
    """A user who owns the namespace `own`, and may modify the table `sales.orders`, which belongs to somebody else."""
    assert lake.create_table("orders").status == 200
    for user in (MALLORY, THIRD):
        assert admin.post(f"{API}/user", {"id": user, "name": "M", "user-type": "human"}).status == 201
    assert lake.create_namespace("own").status == 200
    own = Namespace.objects.select_related("warehouse__project").get(path=["own"])
    give(own, Privilege.OWNERSHIP)
    table = Tabular.objects.select_related("namespace__warehouse__project").get(name="orders")
    give(table, Privilege.MODIFY)
    return lake.as_user("mallory")


def give(target: Namespace | Tabular, privilege: Privilege, to: str = MALLORY) -> None:
    chain = namespace_chain(target) if isinstance(target, Namespace) else tabular_chain(target)
    ledger.give(chain, [(PrincipalId(to), privilege)], granted_by=ADMIN)


def grant_to_third(who: Lake, table: object) -> Answer:
    body = {"writes": [{"privilege": "select", "principal": {"user": THIRD}}]}
    return who.client.post(f"{API}/warehouse/{who.warehouse_id}/table/{table}/grants", body)


def rename(who: Lake, client: AsgiClient) -> Answer:
    body = {"source": identifier("orders"), "destination": identifier("orders", "own")}
    return client.post(who.path("tables", "rename"), body)


def test_acting_as_a_role_does_not_bring_a_table_home(lake: Lake, mallory: Lake, admin: AsgiClient) -> None:
    """Rights: owner of `own`; in a role that may modify `sales.orders` and, by the attacker's grant, create in `own`."""
    role = str(admin.post(f"{API}/role", {"name": "movers"}).json()["id"])
    assert admin.post(f"{API}/role/{role}/members", {"members": [{"user": MALLORY}]}).status == 200
    table = Tabular.objects.select_related("namespace__warehouse__project").get(name="orders")
    give(table, Privilege.MODIFY, f"role:{role}")
    own = Namespace.objects.select_related("warehouse__project").get(path=["own"])
    give(own, Privilege.CREATE, f"role:{role}")
    rename(mallory, AsgiClient({**mallory.client.headers, "x-assume-role": role}))
    assert grant_to_third(mallory, table.uuid).status in {403, 404}


def test_an_accomplice_is_not_brought_a_table(lake: Lake, mallory: Lake) -> None:
    """Rights: modify on `sales.orders`, and create in a namespace that an accomplice owns."""
    own = Namespace.objects.select_related("warehouse__project").get(path=["own"])
    give(own, Privilege.CREATE, THIRD)
    table = Tabular.objects.select_related("namespace__warehouse__project").get(name="orders")
    give(table, Privilege.MODIFY, THIRD)
    third = lake.as_user("third")
    rename(third, third.client)
    assert grant_to_third(mallory, table.uuid).status in {403, 404}


@pytest.mark.parametrize("home", ["own", "sales"])
def test_unregistering_and_registering_wins_nothing(lake: Lake, mallory: Lake, home: str) -> None:
    """Rights: owner of `own`; modify and create on `sales`, not its owner."""
    sales = Namespace.objects.select_related("warehouse__project").get(path=["sales"])
    give(sales, Privilege.MODIFY)
    give(sales, Privilege.CREATE)
    location = mallory.load("orders")["metadata-location"]
    gone = mallory.client.post(mallory.table("orders", "unregister"))
    back = mallory.client.post(mallory.namespace(home, "register"), {"name": "orders", "metadata-location": location})
    table = Tabular.objects.get(name="orders")
    assert grant_to_third(mallory, table.uuid).status in {403, 404}, (gone.status, back.status)


def test_dropping_with_its_files_kept_and_registering_at_home_wins_nothing(lake: Lake, mallory: Lake) -> None:
    """Rights: owner of `own`; modify and create on `sales`, not its owner."""
    sales = Namespace.objects.select_related("warehouse__project").get(path=["sales"])
    give(sales, Privilege.MODIFY)
    location = mallory.load("orders")["metadata-location"]
    assert mallory.client.delete(mallory.table("orders", purgeRequested="false")).status == 204
    body = {"name": "orders", "metadata-location": location}
    assert mallory.client.post(mallory.namespace("own", "register"), body).status == 409
    assert lake.client.post(lake.namespace("sales", "register"), body).status == 200


def test_what_can_be_restored_is_not_made_final_by_unregistering(
    lake: Lake, mallory: Lake, warehouse: Warehouse
) -> None:
    """Rights: modify on `sales.orders`, in a warehouse with soft deletion."""
    Warehouse.objects.filter(id=warehouse.id).update(delete_profile={"type": "soft", "expiration-seconds": 3600})
    assert mallory.client.post(mallory.table("orders", "unregister")).status == 403
    assert lake.load("orders")


def test_a_table_that_comes_back_to_its_namespace_is_its_owners(lake: Lake, mallory: Lake) -> None:
    """Rights: modify and create on `sales`, not its owner."""
    location = dropped_with_its_files_kept(mallory)
    body = {"name": "orders", "metadata-location": location}
    assert mallory.client.post(mallory.namespace("sales", "register"), body).status == 200
    table = Tabular.objects.get(name="orders")
    assert grant_to_third(mallory, table.uuid).status == 403
    assert owners_of(table) == {"oidc~engine"}


def test_an_owner_who_drops_and_registers_again_stays_owner(lake: Lake) -> None:
    """Rights: create on `sales`; the outsider may drop their own tables and register them again, as engines do."""
    sales = Namespace.objects.select_related("warehouse__project").get(path=["sales"])
    give(sales, Privilege.CREATE)
    mallory = lake.as_user("mallory")
    location = mallory.create_table("orders").json()["metadata-location"]
    assert mallory.client.delete(mallory.table("orders", purgeRequested="false")).status == 204
    body = {"name": "orders", "metadata-location": location}
    assert mallory.client.post(mallory.namespace("sales", "register"), body).status == 200
    assert owners_of(Tabular.objects.get(name="orders")) == {MALLORY}


def test_files_of_others_are_not_brought_under_the_name_of_ones_own_table(lake: Lake, mallory: Lake) -> None:
    """Rights: modify and create on `sales`, and owner of the table `sales.mine`."""
    location = dropped_with_its_files_kept(mallory)
    assert mallory.create_table("mine").status == 200
    body = {"name": "mine", "metadata-location": location, "overwrite": True}
    assert mallory.client.post(mallory.namespace("sales", "register"), body).status == 409
    assert lake.client.post(lake.namespace("sales", "register"), body | {"name": "orders"}).status == 200


def test_what_comes_back_is_not_given_to_the_deleted(lake: Lake, mallory: Lake, admin: AsgiClient) -> None:
    """Rights: modify and create on `sales`; the table's owner drops it, and is deleted before it is registered again."""
    table = Tabular.objects.select_related("namespace__warehouse__project").get(name="orders")
    give(table, Privilege.OWNERSHIP, THIRD)
    location = dropped_with_its_files_kept(mallory)
    assert admin.delete(f"{API}/user/{THIRD}").status == 204
    body = {"name": "orders", "metadata-location": location}
    assert mallory.client.post(mallory.namespace("sales", "register"), body).status == 200
    assert owners_of(Tabular.objects.get(name="orders")) == {"oidc~engine"}


def test_who_manages_grants_may_have_what_comes_back(lake: Lake, mallory: Lake) -> None:
    """Rights: modify, create and manage_grants on `sales`, with which the caller may grant every right on the table
    anyway.
    """
    location = dropped_with_its_files_kept(mallory)
    sales = Namespace.objects.select_related("warehouse__project").get(path=["sales"])
    give(sales, Privilege.MANAGE_GRANTS)
    body = {"name": "orders", "metadata-location": location}
    assert mallory.client.post(mallory.namespace("sales", "register"), body).status == 200
    assert owners_of(Tabular.objects.get(name="orders")) == {MALLORY}


def dropped_with_its_files_kept(mallory: Lake) -> str:
    """Drops `sales.orders` as a user who may modify and create in `sales`; returns the location of its metadata file."""
    sales = Namespace.objects.select_related("warehouse__project").get(path=["sales"])
    give(sales, Privilege.MODIFY)
    give(sales, Privilege.CREATE)
    location: str = mallory.load("orders")["metadata-location"]
    assert mallory.client.delete(mallory.table("orders", purgeRequested="false")).status == 204
    return location


def owners_of(table: Tabular) -> set[str]:
    chain = tabular_chain(Tabular.objects.select_related("namespace__warehouse__project").get(id=table.id))
    return {who for who, privilege in ledger.on(chain[-1]) if privilege == Privilege.OWNERSHIP}
