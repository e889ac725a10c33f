"""A caller without a right on an object gets the same answers as for one that does not exist."""

from tests.integration.catalog.lake import Lake


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
