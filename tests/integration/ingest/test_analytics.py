"""`GET /analytics/status`: counters of the log, and what tables hold, as their metadata say."""

from typing import Any

import pytest

from catalog.access import tabular_chain
from catalog.models import Tabular
from catalog.services import table_contents
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants.models import Warehouse
from tenants.services import projects
from tests.installation import ADMIN
from tests.integration.catalog.lake import add_snapshot, set_branch
from tests.integration.ingest.changed import create_table
from tests.servers.asgi_client import AsgiClient

pytestmark = pytest.mark.usefixtures("lake")

PATH = "/lakehouse/analytics/status"
SUMMARY = {
    "operation": "append",
    "total-records": "30",
    "total-position-deletes": "4",
    "total-data-files": "3",
    "total-delete-files": "1",
    "total-files-size": "9000",
    "lakewarden.ingest.to-position": "17",
}
COLUMNS = ("records", "positionDeletes", "dataFiles", "deleteFiles", "bytes", "upToPosition", "kind")


def commit(engine: AsgiClient, lake: Warehouse, name: str, summary: dict[str, str], properties: dict[str, str]) -> None:
    table = Tabular.objects.get(name=name)
    addition: dict[str, Any] = add_snapshot(7, sequence=1, location=table.location)
    addition["snapshot"]["summary"] = summary
    updates = [addition, set_branch("main", 7), {"action": "set-properties", "updates": properties}]
    path = f"/catalog/v1/{lake.id}/namespaces/default/tables/{name}"
    assert engine.post(path, {"requirements": [], "updates": updates}).status == 200


def figures(client: AsgiClient, query: str = "") -> dict[str, tuple[Any, ...]]:
    found = client.get(f"{PATH}{query}").json()["tables"]
    return {table["name"]: tuple(table[column] for column in COLUMNS) for table in found}


def test_figures_are_those_of_the_current_snapshots(lake: Warehouse, engine: AsgiClient) -> None:
    for name in ("empty", "orders", "silent"):
        create_table(engine, lake, name)
    commit(engine, lake, "orders", SUMMARY, {"lakewarden.cdc.kind": "mirror"})
    commit(engine, lake, "silent", {"operation": "append", "total-records": "many"}, {})
    assert figures(engine) == {
        "empty": (0, 0, 0, 0, 0, None, None),
        "orders": (30, 4, 3, 1, 9000, "17", "mirror"),
        "silent": (None, None, None, None, None, None, None),
    }
    (orders,) = (each for each in engine.get(PATH).json()["tables"] if each["name"] == "orders")
    assert (orders["namespace"], orders["id"], orders["snapshotId"]) == (
        ["default"],
        str(Tabular.objects.get(name="orders").uuid),
        7,
    )


def test_only_tables_whose_metadata_the_caller_may_read(
    lake: Warehouse, engine: AsgiClient, client: AsgiClient, stranger: AsgiClient
) -> None:
    for name in ("mine", "other"):
        create_table(engine, lake, name)
    table = Tabular.objects.placed().get(name="mine")
    reader = [(PrincipalId("oidc~reader"), Privilege.SELECT)]
    ledger.give(tabular_chain(table), reader, granted_by=ADMIN)
    projects.bump_epoch(lake.project_id)
    assert set(figures(client.as_user("reader"))) == {"mine"}
    assert set(figures(engine)) == {"mine", "other"}
    assert stranger.get(PATH).status == 404


def test_pages_are_bounded_in_tables_and_in_bytes(
    lake: Warehouse, engine: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {f"t{number}" for number in range(5)}
    for name in names:
        create_table(engine, lake, name)

    def pages(query: str) -> list[set[str]]:
        found, after = [], ""
        while True:
            answer = engine.get(f"{PATH}?{query}{after}").json()
            found.append({each["name"] for each in answer["tables"]})
            if answer["next-page-token"] is None:
                return found
            after = f"&pageToken={answer['next-page-token']}"

    assert [len(page) for page in pages("pageSize=2")] == [2, 2, 1]
    assert set().union(*pages("pageSize=2")) == names
    assert [len(page) for page in pages("pageSize=5")] == [5]
    monkeypatch.setattr(table_contents, "MOST_TABLES", 4)
    assert [len(page) for page in pages("pageSize=1000")] == [4, 1]
    monkeypatch.setattr(table_contents, "MOST_BYTES", 0)
    assert [len(page) for page in pages("")] == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("query", ["?pageSize=0", "?pageSize=x", "?pageToken=nonsense!"])
def test_pages_that_cannot_be_are_refused(engine: AsgiClient, query: str) -> None:
    assert engine.get(f"{PATH}{query}").status == 400
