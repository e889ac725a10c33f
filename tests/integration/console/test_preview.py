"""Who may read the rows of a table, and what is said when there are none. Real rows are read in tests/console."""

import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from console.services import preview
from lakewarden import config
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.integration.console.visitor import Visitor
from tests.servers.asgi_client import AsgiClient


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need long to start the reader."""
    settings = config.current()
    patient = settings.model_copy(update={"console": settings.console.model_copy(update={"preview_s": 120})})
    monkeypatch.setattr(config, "current", lambda: patient)


@pytest.fixture
def orders(admin: AsgiClient, warehouse: Warehouse) -> dict[str, Any]:
    lake = Lake(admin, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    created: dict[str, Any] = lake.create_table("orders").json()["metadata"]
    return created


def rows_of(warehouse: Warehouse, orders: dict[str, Any]) -> str:
    return f"/console/warehouses/{warehouse.id}/tables/{orders['table-uuid']}/rows"


@pytest.fixture
def rows_address(warehouse: Warehouse, orders: dict[str, Any]) -> str:
    return rows_of(warehouse, orders)


def test_a_table_without_a_snapshot_has_no_rows(visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]) -> None:
    answer = visitor("admin").get(rows_of(warehouse, orders))
    assert answer.status == 200
    assert "No rows" in answer.body.decode()


def test_an_unknown_snapshot_is_said(visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]) -> None:
    answer = visitor("admin").get(f"{rows_of(warehouse, orders)}?snapshot=12345")
    assert "There is no such snapshot" in answer.body.decode()


def test_who_may_not_read_data_sees_no_rows_and_is_told_the_right(
    visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any], grant: Grant
) -> None:
    grant("bob", "describe")
    address = rows_of(warehouse, orders)
    assert visitor("bob").get(address).status == 403
    assert visitor("stranger").get(address).status == 404
    tab = visitor("bob").get(address.replace("/rows", "?tab=data")).body.decode()
    assert "takes the privilege <code>select</code>" in tab
    assert "oidc~bob" in tab


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import time; time.sleep(60)", "could not be read within 1 seconds"),
        ("import os; os.abort()", "could not be read within"),
        ("import sys; sys.stdin.read(); sys.exit(3)", "needs the extra `preview`"),
        ("print('x' * 10**8)", "could not be read within"),
    ],
)
def test_a_reader_that_hangs_or_dies_is_said(
    visitor: Visitor, rows_address: str, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    settings = config.current()
    few = settings.model_copy(update={"console": settings.console.model_copy(update={"preview_s": 1})})
    monkeypatch.setattr(preview, "_COMMAND", (sys.executable, "-c", program))
    monkeypatch.setattr(config, "current", lambda: few)
    answer = visitor("admin").get(rows_address)
    assert answer.status == 200
    assert said in unescape(answer.body.decode())


def test_previews_take_turns(visitor: Visitor, warehouse: Warehouse, orders: dict[str, Any]) -> None:
    places = preview._places(config.current().console.previews_at_once)
    address, others = rows_of(warehouse, orders), [f"somebody-{n}" for n in range(8)]
    taken = [each for each in others if places.take(each)]
    try:
        assert "Too many previews" in visitor("admin").get(address).body.decode()
    finally:
        for each in taken:
            places.give_back(each)


def test_one_caller_leaves_a_preview_for_others(
    visitor: Visitor, rows_address: str, orders: dict[str, Any], grant: Grant
) -> None:
    grant("bob", "select")
    places = preview._places(config.current().console.previews_at_once)
    held = 0
    while places.take("oidc~bob"):
        held += 1
    try:
        assert "Too many previews" in visitor("bob").get(rows_address).body.decode()
        assert "Too many previews" not in visitor("admin").get(rows_address).body.decode()
    finally:
        places.give_back("oidc~bob", held)


def test_no_code_comes_from_the_folder_of_the_server(
    visitor: Visitor, rows_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "console").mkdir()
    (tmp_path / "console/__init__.py").write_text("open('was-run', 'w')")
    monkeypatch.chdir(tmp_path)
    assert "No rows" in visitor("admin").get(rows_address).body.decode()
    assert not (tmp_path / "was-run").exists()
