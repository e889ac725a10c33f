"""A caller without a right on an object gets the same answers as for one that does not exist."""

import pytest

from catalog.services import search
from tests.integration.catalog.lake import Lake
from tests.integration.management.tagging import defined, place, put
from tests.servers.asgi_client import AsgiClient


def test_an_outsider_cannot_tell_a_hidden_namespace_from_a_missing_one(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`."""
    hidden = outsider.client.get(outsider.namespace("sales"))
    missing = outsider.client.get(outsider.namespace("selas"))
    assert (hidden.status, missing.status) == (404, 404)
    assert hidden.json()["error"]["message"] == missing.json()["error"]["message"].replace("selas", "sales")


def test_a_reader_of_one_table_cannot_tell_its_neighbour_from_a_missing_table(lake: Lake, reader: Lake) -> None:
    """Rights: select on `sales.orders`."""
    assert lake.create_table("salaries").status == 200
    hidden = reader.client.get(reader.table("salaries"))
    missing = reader.client.get(reader.table("solaries"))
    assert (hidden.status, missing.status) == (404, 404)
    assert hidden.json()["error"]["message"] == missing.json()["error"]["message"].replace("solaries", "salaries")
    assert reader.load("orders")["metadata"]["location"]


def test_better_matches_that_are_hidden_do_not_use_up_the_places_of_a_search(
    lake: Lake, reader: Lake, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: select on `sales.orders`."""
    monkeypatch.setattr(search, "NEAREST", 2)
    for name in ("order", "ordera", "orderb"):
        assert lake.create_table(name).status == 200
    defined(admin, "pii")
    assert put(admin, place(lake, "sales"), "pii", "yes").status == 200
    tag = {"name": "pii", "value": "yes"}
    inside = {"search": place(lake, "sales").rpartition("/")[2]}
    for body in ({"search": "order"}, {"search": "order", "tag": tag}, {"tag": tag}, inside):
        found = reader.client.post(f"{place(lake)}/search-tabular", body).json()["tabulars"]
        assert [each["tabular-name"] for each in found] == ["orders"], body
