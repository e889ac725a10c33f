"""Events of commits have the pointer before and after, by whichever way a commit comes."""

from typing import Any

from lakewarden.events import log
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake, identifier, set_properties
from tests.integration.events.events import all_moved
from tests.servers.asgi_client import AsgiClient


def pointers(name: str) -> list[tuple[str | None, str]]:
    """Before and after, of each event about the object that made or changed it."""
    all_moved()
    found = [each for each in log.read(after=0, limit=1000) if each.data.get("name") == name]
    return [(each.data.get("previous-metadata-location"), each.data["metadata-location"]) for each in found]


def follow_one_another(found: list[tuple[str | None, str]]) -> bool:
    befores, afters = [before for before, _ in found], [after for _, after in found]
    return befores == [None, *afters[:-1]] and len(set(afters)) == len(found)


def test_each_commit_begins_where_the_one_before_ended(engine: AsgiClient, warehouse: Warehouse) -> None:
    lake = Lake(engine, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    assert lake.create_table("orders").status == 200
    for number in range(3):
        assert lake.commit("orders", set_properties(number=str(number))).status == 200
    both: dict[str, Any] = {
        "table-changes": [
            {"identifier": identifier("orders"), "requirements": [], "updates": [set_properties(number="last")]}
        ]
    }
    assert engine.post(lake.path("transactions", "commit"), both).status == 204
    found = pointers("orders")
    assert len(found) == 5
    assert follow_one_another(found)
    assert found[-1][1] == lake.load("orders")["metadata-location"]


def test_views_have_both_pointers_too(engine: AsgiClient, warehouse: Warehouse) -> None:
    lake = Lake(engine, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    assert lake.create_view("newest").status == 200
    changed = engine.post(lake.view("newest"), {"requirements": [], "updates": [set_properties(comment="x")]})
    assert changed.status == 200, changed.body
    found = pointers("newest")
    assert len(found) == 2
    assert follow_one_another(found)
