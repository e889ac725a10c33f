"""Lists never contain names of objects that the caller may not see."""

from dataclasses import replace

import pytest

from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer


def lakehouse(lake: Lake, path: str) -> Answer:
    return lake.client.get(f"/lakehouse/w/lake/v1/{path}")


@pytest.fixture
def hidden(lake: Lake, reader: Lake) -> Lake:
    """Besides `sales.orders`, which the reader may read, namespaces of all levels that they may not see."""
    for path in (("payroll",), ("payroll", "executives"), ("sales", "secret")):
        assert lake.create_namespace(*path).status == 200
    return reader


def test_the_lakehouse_lists_no_namespace_of_others(hidden: Lake) -> None:
    """Rights: select on `sales.orders`."""
    for query in ("", "?parent=", "?pageSize=1"):
        answer = lakehouse(hidden, f"namespaces{query}")
        assert (answer.status, answer.json()["namespaces"]) == (200, [["sales"]])
    assert lakehouse(hidden, "namespaces?parent=sales").json()["namespaces"] == []
    assert lakehouse(hidden, "namespaces?parent=payroll").status == 404


def test_whoever_sees_a_namespace_sees_what_lies_below_in_both_lists(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`."""
    for path in (("outside", "in"), ("outside", "in", "deep"), ("sales", "europe")):
        assert lake.create_namespace(*path).status == 200
    told = lakehouse(outsider, "namespaces").json()
    assert told["namespaces"] == [["outside"], ["outside", "in"], ["outside", "in", "deep"]]
    stranger = replace(outsider, client=outsider.client.as_user("stranger"))
    assert lakehouse(stranger, "namespaces").status == 404
