"""Data contracts say no in every way that a table or view is changed or created, and cost nothing where there is none."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from catalog.models import Tabular
from catalog.services import pointer, tabulars
from catalog.services.contracts import effective
from lakewarden.audit import refusals
from lakewarden.audit.models import AuditEntry
from lakewarden.errors import ContractViolated
from lakewarden.events.models import OutboxEvent
from tenants.models import Warehouse
from tests.integration.catalog.contracts import ID, PLACE, at, becomes, columns, field, put, refused, set_
from tests.integration.catalog.deleted_namespaces import SetProfile, drop, namespace, undrop
from tests.integration.catalog.lake import (
    VIEW_VERSION,
    Lake,
    add_snapshot,
    identifier,
    set_branch,
    set_properties,
)
from tests.integration.catalog.observed import metadata_files
from tests.integration.catalog.together import Committing, together
from tests.servers.asgi_client import Answer, AsgiClient

WIDE = [field(1, "id", "long", required=True), field(2, "place", doc="where"), field(3, "more", required=True)]


@pytest.fixture
def orders(lake: Lake) -> Lake:
    assert lake.create_table("orders").status == 200
    return lake


def test_a_commit_that_breaks_a_contract_is_refused_before_a_file_is_written(
    orders: Lake, admin: AsgiClient, base: Path
) -> None:
    set_(admin, at(orders, "sales"), schema_compatibility="backward")
    before = metadata_files(base)
    answer = orders.commit("orders", *becomes(*WIDE))
    refused(answer, "more", "schema-compatibility backward", "namespace sales", "table sales.orders")
    assert metadata_files(base) == before
    assert columns(orders, "orders") == ["id", "place"]
    assert orders.commit("orders", *becomes(ID, PLACE, field(3, "more"))).status == 200
    assert columns(orders, "orders") == ["id", "place", "more"]


@pytest.mark.parametrize("padding", [0, 40_000], ids=["on the loop", "in a thread"])
def test_both_ways_of_a_commit_refuse_alike_and_leave_one_entry_in_the_audit(
    orders: Lake, admin: AsgiClient, padding: int
) -> None:
    set_(admin, at(orders, "orders"), protected_columns=["place"])
    refusals.PENDING.take()
    answer = orders.commit("orders", *becomes(ID), set_properties(padding="x" * padding))
    refused(answer, "'place' would be dropped", "rule protected-columns", "set on table sales.orders")
    refusals.flush()
    entries = AuditEntry.objects.filter(outcome="denied", action="commit")
    assert [(each.object_type, each.actor, each.count) for each in entries] == [("table", "oidc~engine", 1)]
    assert "protected-columns" in entries[0].reason


def test_rules_are_inherited_and_add_up(lake: Lake, admin: AsgiClient) -> None:
    assert lake.create_namespace("sales", "eu").status == 200
    assert lake.create_table("orders", within=("sales", "eu"), properties={"owner": "me"}).status == 200
    set_(admin, at(lake), required_properties=["owner"])
    set_(admin, at(lake, "sales"), schema_compatibility="backward")
    set_(admin, at(lake, "sales/eu"), schema_compatibility="forward")
    set_(admin, at(lake, "orders"), schema_compatibility="none", protected_columns=["id"])

    def commit(*updates: dict[str, Any]) -> Answer:
        return lake.commit("orders", *updates, within=("sales", "eu"))

    refused(commit({"action": "remove-properties", "removals": ["owner"]}), "required-properties", "warehouse lake")
    refused(commit(*becomes(ID)), "would be dropped", "schema-compatibility full")
    refused(commit(*becomes(ID, field(2, "place", required=True, doc="where"))), "would become required")
    found = admin.get(f"{at(lake, 'orders')}/effective").json()
    assert {(each["rule"], each.get("field"), each["set-on"]["name"]) for each in found["rules"]} == {
        ("schema-compatibility", None, "sales"),
        ("required-properties", "owner", "lake"),
        ("protected-columns", "id", "sales.eu.orders"),
    }
    assert found["rules"][0]["value"] == "full"


def test_an_old_table_stays_usable_and_becomes_no_worse(orders: Lake, admin: AsgiClient) -> None:
    """It violates all of these before they are set: only what a commit adds to that is refused."""
    set_(
        admin,
        at(orders, "sales"),
        required_docs={"table": True, "columns": True},
        required_properties=["owner"],
        required_partition_fields=[{"source": "place"}],
        fixed_properties={"write.format.default": "parquet"},
    )
    location = orders.load("orders")["metadata"]["location"]
    append = [add_snapshot(1, sequence=1, location=location), set_branch("main", 1)]
    assert orders.commit("orders", *append).status == 200
    assert orders.commit("orders", set_properties(colour="red")).status == 200
    refused(orders.commit("orders", *becomes(ID, PLACE, field(3, "more"))), "'more' has no doc", "required-docs")
    assert orders.commit("orders", *becomes(ID, PLACE, field(3, "more", doc="what else"))).status == 200
    refused(orders.commit("orders", set_properties(**{"write.format.default": "orc"})), "must be 'parquet'")


def test_creations_are_judged_in_every_way(lake: Lake, admin: AsgiClient) -> None:
    assert lake.create_table("first").status == 200
    set_(admin, at(lake, "sales"), required_properties=["owner"], required_sort_fields=[{"source": "id"}])
    owned = {"owner": "me"}
    order = {"order-id": 1, "fields": [{"source-id": 7, "transform": "identity", "direction": "asc",
                                        "null-order": "nulls-first"}]}  # fmt: skip
    refused(lake.create_table("a"), "'owner' is missing", "'id' is not a sort field", "namespace sales")
    refused(lake.create_table("a", properties=owned), "required-sort-fields")
    refused(lake.create_table("a", properties=owned, location=_location(lake, "a")), "required-sort-fields")
    refused(lake.create_table("a", stage_create=True), "required-properties")
    assert lake.create_table("a", properties=owned, write_order=order).status == 200
    staged = lake.create_table("b", stage_create=True, properties=owned, write_order=order)
    assert staged.status == 200
    found = staged.json()["metadata"]
    create = [{"type": "assert-create"}]
    updates = [
        {"action": "assign-uuid", "uuid": found["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": found["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": found["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "set-location", "location": found["location"]},
    ]
    unsorted = [{"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
                {"action": "set-default-sort-order", "sort-order-id": -1}]  # fmt: skip
    body: list[Any] = [*updates, *unsorted, set_properties(**owned)]
    refused(lake.commit("b", *body, requirements=create), "required-sort-fields")
    sort = [{"action": "add-sort-order", "sort-order": found["sort-orders"][0]},
            {"action": "set-default-sort-order", "sort-order-id": -1}]  # fmt: skip
    refused(lake.commit("b", *updates, *sort, requirements=create), "required-properties")
    assert lake.commit("b", *updates, *sort, set_properties(**owned), requirements=create).status == 200


def test_views_are_judged_by_the_names_of_their_columns(lake: Lake, admin: AsgiClient) -> None:
    assert lake.create_view("v").status == 200
    set_(admin, at(lake, "sales"), schema_compatibility="full", required_docs={"table": True})
    refused(lake.create_view("w"), "'comment' is missing or empty", "required-docs")
    assert lake.create_view("w", properties={"comment": "all of them"}).status == 200

    def replaced(*fields: dict[str, Any]) -> Any:
        schema = {"type": "struct", "schema-id": 1, "fields": list(fields)}
        version = VIEW_VERSION | {"version-id": 2, "schema-id": -1}
        updates = [
            {"action": "add-schema", "schema": schema, "last-column-id": 9},
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
        return lake.client.post(lake.view("v"), {"updates": updates})

    # an engine numbers the columns anew: the new one is the first
    new = [field(1, "more"), field(2, "id", "long", required=True), field(3, "place", doc="where")]
    assert replaced(*new).status == 200
    refused(replaced(*new[:2]), "'place' would be dropped")
    refused(replaced(new[0], field(2, "id", "int", required=True), new[2]), "'id' would become int instead of long")


def test_a_transaction_is_refused_as_a_whole(orders: Lake, admin: AsgiClient, base: Path) -> None:
    assert orders.create_table("bills").status == 200
    set_(admin, at(orders, "orders"), protected_columns=["place"])
    before = metadata_files(base)
    changes = [
        {"identifier": identifier("bills"), "requirements": [], "updates": [set_properties(paid="yes")]},
        {"identifier": identifier("orders"), "requirements": [], "updates": becomes(ID)},
    ]
    refused(orders.client.post(orders.path("transactions", "commit"), {"table-changes": changes}), "protected-columns")
    assert "paid" not in orders.load("bills")["metadata"]["properties"]
    assert metadata_files(base) == before


def test_registering_is_judged_and_over_a_table_as_a_change_of_it(orders: Lake, admin: AsgiClient) -> None:
    old = orders.load("orders")["metadata-location"]
    assert orders.commit("orders", *becomes(ID, PLACE, field(3, "more"))).status == 200
    new = orders.load("orders")["metadata-location"]
    set_(admin, at(orders, "orders"), protected_columns=["more"])
    again = {"name": "orders", "overwrite": True}

    def post(**body: Any) -> Answer:
        return orders.client.post(orders.namespace("sales", "register"), body)

    refused(post(**again, **{"metadata-location": old}), "'more' would be dropped", "table sales.orders")
    assert post(**again, **{"metadata-location": new}).status == 200
    # and the contract stays with the table that replaced it
    back = {"action": "set-current-schema", "schema-id": 0}
    refused(orders.commit("orders", back), "protected-columns")
    assert orders.client.post(orders.table("orders", "unregister"), {}).status == 200
    set_(admin, at(orders, "sales"), required_properties=["owner"])
    refused(post(name="orders", **{"metadata-location": new}), "required-properties")


def test_what_comes_from_elsewhere_must_keep_the_contract_of_its_new_place(orders: Lake, admin: AsgiClient) -> None:
    assert orders.create_namespace("strict").status == 200
    assert orders.create_namespace("owned").status == 200
    set_(admin, at(orders, "strict"), required_properties=["owner"])

    def renamed(name: str, into: str) -> Any:
        body = {"source": identifier(name), "destination": identifier(name, within=into)}
        return orders.client.post(orders.path("tables", "rename"), body)

    refused(renamed("orders", "strict"), "required-properties", "namespace strict")
    move = f"{at(orders, 'sales').removesuffix('/contract')}/move"
    refused(admin.post(move, {"destination": ["strict", "sales"]}), "required-properties", "strict.sales.orders")
    assert orders.commit("orders", set_properties(owner="me")).status == 200
    assert admin.post(move, {"destination": ["strict", "sales"]}).status == 200
    assert admin.post(move, {"destination": ["sales"]}).status == 200
    assert renamed("orders", "strict").status == 204


def test_a_dropped_table_comes_back_with_its_contract(orders: Lake, admin: AsgiClient, set_profile: SetProfile) -> None:
    """A restore is never refused: a dropped table was promised to be there until its time is over."""
    set_profile(3600)
    set_(admin, at(orders, "orders"), protected_columns=["place"])
    uuid = str(Tabular.objects.get(name="orders").uuid)
    assert orders.client.delete(orders.table("orders")).status == 204
    set_(admin, at(orders, "sales"), required_properties=["owner"])
    undrop = f"/management/v1/warehouse/{orders.warehouse_id}/deleted-tabulars/undrop"
    assert admin.post(undrop, {"targets": [{"type": "table", "id": uuid}]}).status == 204
    refused(orders.commit("orders", *becomes(ID)), "protected-columns")
    assert put(admin, at(orders, "sales"), forbidden_properties=["owner"]).status == 200


def test_a_dropped_namespace_comes_back_with_its_contract(
    orders: Lake, admin: AsgiClient, set_profile: SetProfile
) -> None:
    set_profile(3600)
    set_(admin, at(orders, "sales"), protected_columns=["place"])
    assert drop(orders).status == 204
    assert undrop(orders, namespace("sales")).status == 204
    assert columns(orders, "orders") == ["id", "place"]
    refused(orders.commit("orders", *becomes(ID)), "protected-columns", "namespace sales")
    # one that is dropped for good takes its contract with it
    set_profile(None)
    assert drop(orders).status == 204
    assert orders.create_namespace("sales").status == 200
    assert orders.create_table("orders").status == 200
    assert orders.commit("orders", *becomes(ID)).status == 200


def test_one_refused_commit_of_a_group_costs_the_others_nothing(
    lake: Lake, committing: Committing, admin: AsgiClient
) -> None:
    set_(admin, at(lake, "orders"), protected_columns=["place"], forbidden_properties=["bad"])
    rules = effective.of_tabular(_row("orders"))
    outcomes = together(
        *(
            _with(committing.to("orders", *updates), rules)
            for updates in ([set_properties(a="1")], becomes(ID), [set_properties(bad="1")], [set_properties(b="1")])
        )
    )
    assert [isinstance(each, ContractViolated) for each in outcomes] == [False, True, True, False]
    assert {"a", "b"} <= lake.load("orders")["metadata"]["properties"].keys()


def test_a_chain_is_judged_on_what_is_before_each_commit(lake: Lake, committing: Committing, admin: AsgiClient) -> None:
    """The first commit adds the column that the second one would drop."""
    set_(admin, at(lake, "orders"), schema_compatibility="full")
    rules = effective.of_tabular(_row("orders"))
    wide = committing.to("orders", *becomes(ID, PLACE, field(3, "more")))
    back = committing.to("orders", {"action": "set-current-schema", "schema-id": 0})
    outcomes = together(_with(wide, rules), _with(back, rules))
    assert isinstance(outcomes[1], ContractViolated)
    assert "'more' would be dropped" in str(outcomes[1])
    assert columns(lake, "orders") == ["id", "place", "more"]


def test_a_contract_is_felt_by_commits_that_were_decided_before_it_was_set(
    lake: Lake, committing: Committing, admin: AsgiClient
) -> None:
    """On the loop they find that the project's epoch was raised, elsewhere that the contracts have another version."""
    late, ordinary = (committing.to("orders", *becomes(ID)) for _ in range(2))
    set_(admin, at(lake, "orders"), protected_columns=["place"])
    assert together(late) == [None]
    with pytest.raises(ContractViolated):
        pointer.commit(ordinary)
    assert columns(lake, "orders") == ["id", "place"]


def test_a_creation_that_was_judged_by_older_contracts_is_not_made(
    lake: Lake, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = tabulars.write

    def late(creation: Any) -> Any:
        set_(admin, at(lake, "sales"), required_properties=["owner"])
        return write(creation)

    with monkeypatch.context() as patched:
        patched.setattr(tabulars, "write", late)
        answer = lake.create_table("orders", location=_location(lake, "orders"))
    assert answer.status == 503
    assert "A data contract was changed in the meantime" in answer.json()["error"]["message"]
    refused(lake.create_table("orders", location=_location(lake, "orders")), "required-properties")


def test_another_replica_feels_a_contract_with_its_next_commit(
    orders: Lake, admin: AsgiClient, database_url: str
) -> None:
    """This process remembers what another one changes in the database."""
    set_(admin, at(orders, "sales"), protected_columns=["id"])
    assert orders.commit("orders", set_properties(a="1")).status == 200
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute('update data_contract set document = \'{"protected-columns": ["place"]}\'')
        other.execute("update warehouse set contracts = contracts + 1")
    refused(orders.commit("orders", *becomes(ID)), "'place' would be dropped")


def test_changes_of_contracts_are_recorded(orders: Lake, admin: AsgiClient) -> None:
    set_(admin, at(orders, "orders"), protected_columns=["id"])
    set_(admin, at(orders, "orders"), protected_columns=["id"])
    set_(admin, at(orders, "orders"), protected_columns=["place"])
    assert admin.delete(at(orders, "orders")).status == 204
    assert admin.delete(at(orders, "orders")).status == 204
    assert admin.get(at(orders, "orders")).json() == {"contract": {}}
    events = OutboxEvent.objects.filter(type__contains="DataContract").order_by("sequence")
    assert [(each.type, each.data["contract-version"], each.data["before"]) for each in events] == [
        ("setDataContract", 1, None),
        ("setDataContract", 2, {"protected-columns": ["id"]}),
        ("removeDataContract", 3, {"protected-columns": ["place"]}),
    ]
    assert orders.commit("orders", *becomes(ID)).status == 200


def test_a_warehouse_without_contracts_asks_nothing(
    orders: Lake, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Warehouse.objects.get(id=warehouse.id).contracts == 0

    def never(*_: object) -> Any:
        raise AssertionError("it asked for contracts")

    monkeypatch.setattr(effective, "fetch", never)
    monkeypatch.setattr(effective._FOUND, "find", never)
    assert orders.commit("orders", set_properties(a="1")).status == 200
    assert orders.commit("orders", set_properties(a="x" * 40_000)).status == 200
    assert orders.create_table("bills").status == 200
    assert orders.create_view("v").status == 200


def test_with_contracts_one_look_up_is_remembered(
    orders: Lake, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_(admin, at(orders, "sales"), protected_columns=["id"])
    asked: list[object] = []
    find = effective._FOUND.find

    async def counted(key: Any) -> Any:
        asked.append(key)
        return await find(key)

    monkeypatch.setattr(effective._FOUND, "find", counted)
    for number in range(5):
        assert orders.commit("orders", set_properties(a=str(number))).status == 200
    assert len(asked) == 1


def _with(commit: Any, rules: Any) -> Any:
    return replace(commit, rules=rules)


def _row(name: str) -> Tabular:
    return Tabular.objects.select_related("namespace__warehouse").get(name=name)


def _location(lake: Lake, name: str) -> str:
    found = Warehouse.objects.get(id=lake.warehouse_id).location
    return f"{found}/chosen/{name}"
