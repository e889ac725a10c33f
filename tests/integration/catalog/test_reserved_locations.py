"""Places that are reserved: staged, earlier and released ones; their limits, their races, and what an upgrade fills."""

import importlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from catalog.services import staged_creations
from lakewarden import config
from lakewarden.db_transaction import after_commit, changing
from lakewarden.errors import Unavailable
from tests.integration.catalog.at_once import at_once
from tests.integration.catalog.lake import Lake, identifier, set_properties
from tests.integration.catalog.locations import move
from tests.integration.catalog.observed import local
from tests.integration.catalog.staged import commit_staged
from tests.servers.asgi_client import Answer

Call = Callable[[], Answer]


def sql(statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def reserved() -> list[tuple[str, str]]:
    return [(kind, place) for kind, place in sql("select kind, location from reserved_location order by location")]


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    def limit(name: str, value: int) -> None:
        few = config.current().model_copy(update={"catalog": config.CatalogConfig.model_validate({name: value})})
        monkeypatch.setattr(config, "current", lambda: few)

    return limit


def expire() -> None:
    sql("update reserved_location set expires_at = now() - interval '1 second' where kind = 'staged'")


def test_a_staged_place_is_reserved_until_it_is_committed(lake: Lake, base: Path) -> None:
    staged = lake.create_table("orders", stage_create=True).json()
    assert reserved() == [("staged", staged["metadata"]["location"])]
    assert commit_staged(lake, "orders", staged).status == 200
    assert reserved() == []
    assert commit_staged(lake, "again", staged).status == 409


def test_an_empty_place_is_staged_anew_by_the_same_caller(lake: Lake, base: Path) -> None:
    place = f"file://{base}/mine"
    first = lake.create_table("orders", location=place, stage_create=True).json()
    second = lake.create_table("orders", location=place, stage_create=True).json()
    assert reserved() == [("staged", place)]
    local(place).mkdir(exist_ok=True)
    (local(place) / "part-0.parquet").write_bytes(b"rows")
    assert commit_staged(lake, "first", first).status == 400
    assert commit_staged(lake, "second", second).status == 200


def test_an_expired_place_is_free_when_it_is_empty(lake: Lake, base: Path) -> None:
    place = f"file://{base}/mine"
    lake.create_table("orders", location=place, stage_create=True)
    maker = lake.as_user("maker")
    expire()
    assert lake.create_table("other", location=place).status == 200
    assert maker.create_table("other", location=place).status == 404
    lake.create_table("more", location=f"{place}-2", stage_create=True)
    expire()
    folders = [base / "mine-2" / each for each in ("data", "metadata")]
    assert all(each.is_dir() for each in folders)  # DuckDB writes only where a folder is
    assert staged_creations.end_expired() == 1
    assert reserved() == []
    assert not (base / "mine-2").exists()


def test_an_expired_place_with_files_stays_its_namespaces(lake: Lake, base: Path) -> None:
    staged = lake.create_table("orders", location=f"file://{base}/mine", stage_create=True).json()
    local(staged["metadata"]["location"]).mkdir(exist_ok=True)
    (local(staged["metadata"]["location"]) / "part-0.parquet").write_bytes(b"rows")
    expire()
    for _ in range(2):
        lake.create_table("mover")
        assert lake.commit("mover", move(f"file://{base}/mine")).status == 400
        assert lake.create_table("inside", location=f"file://{base}/mine/deeper").status == 409
        assert staged_creations.end_expired() in {0, 1}
    assert reserved() == [("released", f"file://{base}/mine")]


def test_a_caller_stages_so_many_and_no_more(lake: Lake, limited: Callable[[str, int], None]) -> None:
    limited("max_staged", 2)
    staged = [lake.create_table(f"t{number}", stage_create=True) for number in range(3)]
    assert [answer.status for answer in staged] == [200, 200, 409]
    assert "catalog.max_staged" in staged[-1].message()
    assert commit_staged(lake, "t0", staged[0].json()).status == 200
    assert lake.create_table("t3", stage_create=True).status == 200
    lake.create_namespace("other")
    assert lake.create_table("t3", within="other", stage_create=True).status == 200


def test_a_commit_has_so_many_updates_and_no_more(lake: Lake, limited: Callable[[str, int], None]) -> None:
    lake.create_table("orders")
    limited("max_updates_per_commit", 3)
    assert lake.commit("orders", *[set_properties(a="b")] * 3).status == 200
    for answer in (
        lake.commit("orders", *[set_properties(a="c")] * 4),
        lake.commit("orders", requirements=[{"type": "assert-table-uuid", "uuid": "x"}] * 4),
    ):
        assert answer.error() == (400, "BadRequestException")
        assert "catalog.max_updates_per_commit" in answer.message()


def test_a_transaction_has_so_many_changes_and_no_more(lake: Lake, limited: Callable[[str, int], None]) -> None:
    limited("max_changes_per_transaction", 1)
    changes = [{"identifier": identifier(name), "requirements": [], "updates": []} for name in "ab"]
    answer = lake.client.post(lake.path("transactions", "commit"), {"table-changes": changes})
    assert answer.error() == (400, "BadRequestException")
    assert "catalog.max_changes_per_transaction" in answer.message()


def test_a_move_leaves_its_place_reserved_and_returns_to_it(lake: Lake, base: Path) -> None:
    first = lake.create_table("orders").json()["metadata"]["location"]
    assert lake.commit("orders", move(f"file://{base}/mine")).status == 200
    assert reserved() == [("earlier", first)]
    assert lake.commit("orders", move(first)).status == 200
    assert reserved() == [("earlier", f"file://{base}/mine")]
    assert lake.client.post(lake.table("orders", "unregister")).status == 200
    assert {kind for kind, _ in reserved()} == {"released"}


def test_a_registered_table_has_its_earlier_places_back(lake: Lake, base: Path) -> None:
    first = lake.create_table("orders").json()["metadata"]["location"]
    told = lake.commit("orders", move(f"file://{base}/mine")).json()
    lake.client.delete(lake.table("orders"))
    body = {"name": "back", "metadata-location": told["metadata-location"]}
    assert lake.client.post(lake.namespace("sales", "register"), body).status == 200
    assert reserved() == [("earlier", first)]
    assert {outcome for (outcome,) in sql("select outcome from task")} == {"CANCELLED"}


@pytest.mark.parametrize("_turn", range(4))
def test_one_of_many_takers_of_a_place_wins(lake: Lake, base: Path, _turn: int) -> None:
    place = f"file://{base}/place"
    lake.create_table("mover")
    staged = lake.create_table("by-commit", stage_create=True).json()
    staged["metadata"]["location"] = place
    calls: list[Call] = [
        lambda: lake.create_table("made", location=place),
        lambda: lake.create_table("staged", location=f"{place}/inside/deeper/still", stage_create=True),
        lambda: lake.create_view("view", location=f"{place}/inside/deeper"),
        lambda: lake.commit("mover", move(f"{place}/inside")),
        lambda: lake.create_namespace("folder", properties={"location": place}),
        lambda: commit_staged(lake, "by-commit", staged),
    ]
    answers = Counter(answer.status for answer in at_once(calls))
    assert answers[200] == 1, answers
    assert set(answers) <= {200, 400, 409}


def test_one_of_two_registrations_of_a_place_wins(lake: Lake) -> None:
    file = lake.create_table("orders").json()["metadata-location"]
    lake.client.post(lake.table("orders", "unregister"))
    route = lake.namespace("sales", "register")
    bodies = [{"name": f"t{number}", "metadata-location": file} for number in range(4)]
    answers = at_once([lambda body=body: lake.client.post(route, body) for body in bodies])  # type: ignore[misc]
    assert Counter(answer.status for answer in answers) == {200: 1, 409: 3}


def test_an_upgrade_reserves_what_waits_for_its_removal(lake: Lake) -> None:
    place = lake.create_table("orders").json()["metadata"]["location"]
    lake.client.delete(lake.table("orders"))
    before = sql("select owner_id, namespace_id, kind, location from reserved_location")
    # as the release of that migration named what a task was about
    sql("update task set entity_id = (select owner_id::text from reserved_location)")
    sql("delete from reserved_location")
    sql(importlib.import_module("catalog.migrations.0009_reserved_locations")._FILL)
    assert sql("select owner_id, namespace_id, kind, location from reserved_location") == before
    assert [each[3] for each in before] == [place]


def test_what_follows_a_commit_cannot_undo_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[bool] = []

    def fail() -> None:
        raise Unavailable("the storage is away")

    with changing():
        transaction.on_commit(fail)
    with changing():
        after_commit(fail)
        after_commit(lambda: followed.append(True))
    assert followed == [True]

    monkeypatch.setattr("catalog.services.pointer.keep_recent", lambda _: fail())
    lake.create_table("orders")
    told = lake.commit("orders", set_properties(a="b")).json()
    assert local(told["metadata-location"]).exists()
