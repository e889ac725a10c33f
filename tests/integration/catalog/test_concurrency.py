"""Many callers at once: nothing is lost or doubled, and no request waits for ever."""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from catalog.models import Tabular, TabularDocument
from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from lakewarden.storage.local import LocalStorage
from tests.integration.catalog.at_once import at_once
from tests.integration.catalog.lake import Lake, add_snapshot, identifier, set_branch, set_properties
from tests.integration.catalog.observed import local
from tests.integration.catalog.staged import commit_staged
from tests.servers.asgi_client import Answer

PATIENCE_S = 60


@pytest.mark.parametrize("stall_s", [0, 1.5])
def test_no_commit_to_one_table_is_lost(
    lake: Lake, base: Path, stall_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them may take long, as on a busy machine: requests that wait behind it are then refused for a moment."""
    write = LocalStorage.write_new
    stalls = iter([stall_s])

    def stalling(self: LocalStorage, location: str, content: bytes) -> None:
        time.sleep(next(stalls, 0))
        write(self, location, content)

    before = lake.create_table("orders", properties={"write.metadata.previous-versions-max": "1000"}).json()
    uuid = {"type": "assert-table-uuid", "uuid": before["metadata"]["table-uuid"]}
    committers, rounds = 100, 1
    monkeypatch.setattr(LocalStorage, "write_new", stalling)

    def committed(key: str) -> Answer:
        """Repeat on 503, as clients do: it promises that nothing was changed, which the counts below prove."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = lake.commit("orders", set_properties(**{key: "x"}), requirements=[uuid])
            if answer.status != 503 or time.monotonic() > deadline:
                return answer
            time.sleep(int(answer.headers["retry-after"]))

    def commits(committer: int) -> list[tuple[str, Answer]]:
        keys = [f"{committer}-{each}" for each in range(rounds)]
        return [(key, committed(key)) for key in keys]

    with ThreadPoolExecutor(committers) as threads:
        ledger = [entry for entries in threads.map(commits, range(committers)) for entry in entries]

    assert Counter(answer.status for _, answer in ledger) == {200: committers * rounds}
    after = lake.load("orders")
    acknowledged = {key for key, _ in ledger}
    assert acknowledged <= set(after["metadata"]["properties"])
    files = [answer.json()["metadata-location"] for _, answer in ledger]
    assert len(set(files)) == len(ledger)
    log = [each["metadata-file"] for each in after["metadata"]["metadata-log"]]
    assert {*log, after["metadata-location"]} == {*files, before["metadata-location"]}
    assert {local(file) for file in (*files, before["metadata-location"])} == set(base.rglob("*.metadata.json"))
    assert Tabular.objects.get().version == TabularDocument.objects.get().version == 1 + len(ledger)
    for recorded in (AuditEntry.objects.filter(action="updateTable"), OutboxEvent.objects.filter(type="updateTable")):
        assert recorded.count() == len(ledger)


def test_each_answer_holds_its_own_commit_and_all_before_it(lake: Lake) -> None:
    lake.create_table("orders")
    answers = at_once([lambda key=f"k{n}": lake.commit("orders", set_properties(**{key: "x"})) for n in range(6)])  # type: ignore[misc]
    seen = sorted((set(answer.json()["metadata"]["properties"]) for answer in answers), key=len)
    assert all(earlier < later for earlier, later in pairwise(seen))


def test_one_of_many_appends_to_the_same_state_wins(lake: Lake) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    unborn = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}

    def append(number: int) -> Callable[[], Answer]:
        updates = add_snapshot(number, sequence=1, location=location), set_branch("main", number)
        return lambda: lake.commit("orders", *updates, requirements=[unborn])

    answers = at_once([append(number) for number in range(1, 9)])
    assert Counter(answer.status for answer in answers) == {200: 1, 409: 7}
    assert {answer.error()[1] for answer in answers if answer.status == 409} == {"CommitFailedException"}
    winner = next(answer.json() for answer in answers if answer.status == 200)
    assert lake.load("orders")["metadata"] == winner["metadata"]


def test_one_of_many_creators_of_a_name_wins(lake: Lake, base: Path) -> None:
    staged = lake.create_table("orders", stage_create=True).json()
    calls: list[Callable[[], Answer]] = [lambda: lake.create_table("orders"), lambda: lake.create_view("Orders")] * 3
    answers = at_once([*calls, lambda: commit_staged(lake, "ORDERS", staged)])
    assert Counter(answer.status for answer in answers) == {200: 1, 409: 6}
    assert Tabular.everything.count() == TabularDocument.objects.count() == 1
    assert list(base.rglob("*.metadata.json")) == [local(Tabular.objects.get().metadata_location)]


def test_one_of_many_creators_at_a_location_wins(lake: Lake, base: Path) -> None:
    places = [f"file://{base}/x/mine", f"file://{base}/x", f"file://{base}/x/mine/deep"] * 2
    calls: list[Callable[[], Answer]] = []
    for number, place in enumerate(places):
        staged = lake.create_table(f"t{number}", stage_create=True).json()
        staged["metadata"]["location"] = place
        calls.append(lambda name=f"t{number}", staged=staged: commit_staged(lake, name, staged))  # type: ignore[misc]
    answers = at_once(calls)
    # later requests find the winner's table (409) or, before that exists, its first file (400)
    statuses = Counter(answer.status for answer in answers)
    assert (statuses[200], statuses[400] + statuses[409]) == (1, 5)
    assert Tabular.everything.count() == 1


def test_one_of_many_namespaces_of_a_name_wins(lake: Lake) -> None:
    answers = at_once([lambda: lake.create_namespace("hr"), lambda: lake.create_namespace("HR")] * 3)
    assert Counter(answer.status for answer in answers) == {200: 1, 409: 5}


def test_a_namespace_is_not_dropped_from_under_a_new_table(lake: Lake) -> None:
    for number in range(6):
        name = f"ns{number}"
        lake.create_namespace(name)
        dropped, created = at_once(
            [
                lambda name=name: lake.client.delete(lake.namespace(name)),  # type: ignore[misc]
                lambda name=name: lake.create_table("orders", within=name),  # type: ignore[misc]
            ]
        )
        assert (dropped.status, created.status) in {(204, 404), (409, 200)}
        assert lake.client.head(lake.namespace(name)).status == (404 if dropped.status == 204 else 204)


def test_drops_renames_and_commits_of_one_table_end_in_order(lake: Lake) -> None:
    move: dict[str, Any] = {"source": identifier("orders"), "destination": identifier("moved")}
    for _ in range(4):
        lake.create_table("orders")
        calls: list[Callable[[], Answer]] = [
            lambda: lake.client.delete(lake.table("orders")),
            lambda: lake.client.post(lake.path("tables", "rename"), move),
            *[lambda: lake.commit("orders", set_properties(a="b"))] * 4,
        ]
        answers = at_once(calls)
        assert {answer.status for answer in answers} <= {200, 204, 404}
        dropped, renamed = answers[:2]
        assert [dropped.status, renamed.status].count(204) >= 1
        for name in ("orders", "moved"):
            lake.client.delete(lake.table(name))
        assert not Tabular.everything.exists()
