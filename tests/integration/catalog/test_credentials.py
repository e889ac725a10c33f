"""`GET …/tables/{table}/credentials`."""

import pytest

from tests.installation import Grant
from tests.integration.catalog.lake import Lake


@pytest.mark.parametrize("query", [{}, {"planId": "p1"}, {"referenced-by": "sales\x1freport,sales\x1fother"}])
def test_a_local_warehouse_has_no_credentials(lake: Lake, query: dict[str, str]) -> None:
    lake.create_table("orders")
    answer = lake.client.get(lake.table("orders", "credentials", **query))
    assert answer.json() == {"storage-credentials": []}


def test_credentials_are_for_readers_of_the_data(lake: Lake, grant: Grant) -> None:
    lake.create_table("orders")
    grant("reader", "select")
    grant("looker", "describe")
    route = lake.table("orders", "credentials")
    assert lake.as_user("reader").client.get(route).status == 200
    assert lake.as_user("looker").client.get(route).error() == (403, "ForbiddenException")
    assert lake.as_user("stranger").client.get(route).error()[0] == 404


def test_a_view_or_nothing_has_no_credentials(lake: Lake) -> None:
    lake.create_view("report")
    for name in ("report", "nowhere"):
        assert lake.client.get(lake.table(name, "credentials")).error() == (404, "NoSuchTableException")
