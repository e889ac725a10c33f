"""A table that Spark creates from a query (a staged creation) is known to the management API by its uuid."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.conformance.sql import Sql
from tests.servers.lakewarden_server import DevServer

Manage = Callable[..., Any]


@pytest.fixture
def warehouse(manage: Manage, server: DevServer) -> Iterator[str]:
    """The path of the warehouse in the management API; what is dropped in the test can be restored."""
    path = f"/management/v1/warehouse/{server.info.warehouse.id}"
    profile = {"type": "soft", "expiration-seconds": 3600}
    manage("POST", f"{path}/delete-profile", {"delete-profile": profile})
    yield path
    manage("POST", f"{path}/delete-profile", {"delete-profile": {"type": "hard"}})


def test_a_table_created_from_a_query_is_managed_by_its_uuid(
    run: Sql, catalog: RestCatalog, manage: Manage, warehouse: str
) -> None:
    run("CREATE TABLE {ns}.t USING iceberg AS SELECT 1 AS id")
    uuid = str(catalog.load_table((run.namespace, "t")).metadata.table_uuid)
    table = f"{warehouse}/table/{uuid}"
    assert manage("GET", f"{table}/protection")["protected"] is False
    assert {"action": "drop"} in manage("GET", f"{table}/actions")["allowed-actions"]

    writes = [{"privilege": "select", "principal": {"user": "oidc~lakewarden-reader"}}]
    manage(
        "POST", "/management/v1/user", {"id": "oidc~lakewarden-reader", "name": "Reader", "user-type": "application"}
    )
    manage("POST", f"{table}/grants", {"writes": writes})
    granted = manage("GET", f"{table}/grants")["grants"]
    assert ("select", {"user": "oidc~lakewarden-reader"}) in [
        (each["privilege"], each["principal"]) for each in granted
    ]
    found = manage("POST", f"{warehouse}/search-tabular", {"search": uuid})["tabulars"]
    assert [each["tabular-name"] for each in found] == ["t"]

    run("DROP TABLE {ns}.t")
    dropped = manage("GET", f"{warehouse}/deleted-tabulars")["tabulars"]
    assert [each["name"] for each in dropped if each["id"] == uuid] == ["t"]
    manage("POST", f"{warehouse}/deleted-tabulars/undrop", {"targets": [{"type": "table", "id": uuid}]})
    assert run("SELECT id FROM {ns}.t") == [(1,)]
    assert manage("GET", f"{table}/grants")["grants"] == granted


def test_a_replaced_table_keeps_its_id(run: Sql, catalog: RestCatalog, manage: Manage, warehouse: str) -> None:
    run("CREATE TABLE {ns}.t USING iceberg AS SELECT 1 AS id")
    uuid = str(catalog.load_table((run.namespace, "t")).metadata.table_uuid)
    manage("POST", f"{warehouse}/table/{uuid}/protection", {"protected": True})
    run("CREATE OR REPLACE TABLE {ns}.t USING iceberg AS SELECT 2 AS other")
    assert str(catalog.load_table((run.namespace, "t")).metadata.table_uuid) == uuid
    assert manage("GET", f"{warehouse}/table/{uuid}/protection")["protected"] is True
