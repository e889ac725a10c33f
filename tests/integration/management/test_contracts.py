"""Data contracts in the management API: who sets them, what is refused at setting, and dry runs."""

from typing import Any

import pytest

from catalog.models import DataContract, Tabular
from lakewarden import config
from lakewarden.authz.model import Privilege
from lakewarden.events.models import OutboxEvent
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.contracts import ID, PLACE, at, becomes, field, put, set_
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.management.tagging import EVE, give
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    """With the tables `orders` and the view `v` in the namespace `sales`."""
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    assert found.create_table("orders").status == 200
    assert found.create_view("v").status == 200
    return found


def test_whoever_may_change_a_table_may_not_lift_its_contract(
    lake: Lake, admin: AsgiClient, client: AsgiClient
) -> None:
    set_(admin, at(lake, "orders"), protected_columns=["id"])
    eve = client.as_user("eve")
    assert put(eve, at(lake, "orders"), protected_columns=["id"]).status == 404
    give("orders", Privilege.MODIFY)
    assert eve.get(at(lake, "orders")).json()["contract"] == {"protected-columns": ["id"]}
    assert put(eve, at(lake, "orders"), protected_columns=["place"]).status == 403
    assert eve.delete(at(lake, "orders")).status == 403
    give("orders", Privilege.OWNERSHIP)
    set_(eve, at(lake, "orders"), protected_columns=["place"])
    assert eve.get(at(lake, "orders")).json()["set-by"] == EVE
    # an owner of the table decides nothing about its namespace
    assert put(eve, at(lake, "sales"), protected_columns=["place"]).status in {403, 404}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({}, "it has no rule"),
        ({"protected_colums": ["a"]}, "protected-colums"),
        ({"schema_compatibility": "backwards"}, "Invalid enum value 'backwards'"),
        ({"protected_columns": "id"}, "Expected `array`"),
        ({"protected_columns": [""]}, "protected-columns"),
        ({"protected_columns": [f"c{number}" for number in range(300)]}, "at most 200 are allowed"),
        ({"protected_columns": ["x" * 900] * 100}, "at most 65536 are allowed"),
        ({"protected_columns": ["a\x00b"]}, "cannot be stored"),
        ({"required_partition_fields": [{"source": "id", "transform": "weekly"}]}, "'weekly' is not a known transform"),
        ({"required_partition_fields": [{"source": "id", "transform": "bucket"}]}, "it needs a width"),
        ({"verifier": {"name": "http://10.0.0.1/"}}, "is not configured on this server; configured: none"),
        (
            {"required_properties": ["a"], "forbidden_properties": ["a"]},
            "the warehouse lake requires the property a, the warehouse lake forbids it",
        ),
    ],
)
def test_bad_rules_are_refused_with_a_sentence(
    lake: Lake, admin: AsgiClient, rules: dict[str, Any], message: str
) -> None:
    answer = put(admin, at(lake), **rules)
    assert answer.status == 400, answer.body
    assert message in answer.json()["error"]["message"]
    assert not DataContract.objects.exists()


def test_rules_of_two_levels_that_contradict_each_other_are_refused_with_both(lake: Lake, admin: AsgiClient) -> None:
    set_(admin, at(lake, "orders"), fixed_properties={"tier": "gold"}, required_docs={"table": True})
    answer = put(admin, at(lake, "sales"), fixed_properties={"tier": "silver"})
    assert answer.status == 409
    assert (
        "the namespace sales fixes the property tier to 'silver', the table sales.orders fixes it to 'gold'"
        in answer.json()["error"]["message"]
    )
    answer = put(admin, at(lake), forbidden_properties=["comment"])
    assert answer.status == 409
    assert "the warehouse lake forbids it" in answer.json()["error"]["message"]
    set_(admin, at(lake, "sales"), fixed_properties={"tier": "gold"})
    answer = put(admin, at(lake, "v"), forbidden_properties=["tier"])
    assert (
        "the namespace sales fixes the property tier, the view sales.v forbids it" in answer.json()["error"]["message"]
    )


def test_a_contract_goes_with_its_object(lake: Lake, admin: AsgiClient) -> None:
    set_(admin, at(lake, "orders"), protected_columns=["id"])
    assert lake.client.delete(lake.table("orders")).status == 204
    assert not DataContract.objects.exists()


def test_there_are_only_so_many(lake: Lake, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    few = config.current().contracts.model_copy(update={"max_in_warehouse": 1})
    now = config.current().model_copy(update={"contracts": few})
    monkeypatch.setattr(config, "current", lambda: now)
    set_(admin, at(lake), protected_columns=["id"])
    answer = put(admin, at(lake, "sales"), protected_columns=["id"])
    assert (answer.status, "contracts.max_in_warehouse" in answer.json()["error"]["message"]) == (409, True)
    set_(admin, at(lake), protected_columns=["place"])


def test_a_dry_run_says_what_a_change_would_violate(lake: Lake, admin: AsgiClient, grant: Grant) -> None:
    set_(admin, at(lake, "sales"), schema_compatibility="full", required_properties=["owner"])
    before = Tabular.objects.get(name="orders").version, OutboxEvent.objects.count()
    grant("reader", "describe")
    reader = lake.client.as_user("reader")

    def check(name: str, **body: Any) -> Any:
        answer = reader.post(f"{at(lake, name)}/check", body)
        assert answer.status == 200, answer.body
        return answer.json()

    same = {"type": "struct", "fields": [ID, PLACE]}
    assert check("orders", schema=same) == {"allowed": True, "violations": []}
    narrow = {"type": "struct", "fields": [ID, field(3, "more", required=True)]}
    found = check("orders", schema=narrow)
    assert not found["allowed"]
    sales = found["violations"][0]["set-on"]
    assert (sales["type"], sales["name"]) == ("namespace", "sales")
    assert [(each["rule"], each["field"]) for each in found["violations"]] == [
        ("schema-compatibility full", "more"),
        ("schema-compatibility full", "place"),
    ]
    updates = [*becomes(ID), set_properties(owner="me")]
    assert [each["field"] for each in check("orders", commit={"updates": updates})["violations"]] == ["place"]
    assert [each["field"] for each in check("v", schema={"type": "struct", "fields": [ID]})["violations"]] == ["place"]
    assert check("sales", schema=narrow)["violations"][0]["rule"] == "required-properties"
    create = {"name": "new", "schema": narrow, "properties": {"owner": "me"}}
    assert check("sales", **{"create-table": create})["allowed"]
    assert (Tabular.objects.get(name="orders").version, OutboxEvent.objects.count()) == before


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("orders", {}, "exactly one of schema, commit is expected here, given: none"),
        ("orders", {"create-table": {"name": "x"}}, "given: create-table"),
        ("sales", {"commit": {"updates": []}}, "exactly one of schema, create-table, create-view"),
        ("orders", {"schema": {"type": "struct"}}, "fields"),
        ("orders", {"shema": {}}, "shema"),
        ("sales", {"create-table": {"schema": {}}}, "name"),
    ],
)
def test_dry_runs_of_nothing_sensible_are_refused(
    lake: Lake, admin: AsgiClient, name: str, body: Any, message: str
) -> None:
    answer = admin.post(f"{at(lake, name)}/check", body)
    assert answer.status == 400, answer.body
    assert message in answer.json()["error"]["message"]
