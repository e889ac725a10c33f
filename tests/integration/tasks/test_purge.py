"""One purge, in-process: whatever happens to it, the files of one table are gone, and the ledger says how many."""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from procrastinate.exceptions import JobAborted

from catalog.models import Namespace
from catalog.services import locations
from lakewarden import config
from lakewarden.storage.interface import OutOfReach, StorageError
from lakewarden.storage.local import LocalStorage
from lakewarden.storage.removal import Found, Removed, Tally
from lakewarden.tasks import attempts, purge
from lakewarden.tasks.attempts import GivenUp
from lakewarden.tasks.purge_ledger import Ledger
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake
from tests.integration.tasks.purges import ask, fill, ledger, outcome, run, sql
from tests.servers.asgi_client import AsgiClient

NAMES = ("metadata/v1.json", "metadata/v2.json", "data/p=1/a.parquet", "data/p=2/a.parquet", "data/p=2/b.parquet")


class Killed(BaseException):
    """Stands for kill -9: nothing of the process runs after it."""


@pytest.fixture
def sales(warehouse: Warehouse, tmp_path: Path) -> Path:
    """The folder of a namespace, with decoys beside `orders`."""
    folder = tmp_path / "lake" / "sales"
    fill(folder, ["orders2/a", "orders.old/a", "order/a", "orders_/metadata/v1.json"])
    return folder


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "BATCH", 1)


def left(sales: Path) -> list[str]:
    return sorted(str(path.relative_to(sales)) for path in sales.rglob("*") if not path.is_dir())


DECOYS = ["order/a", "orders.old/a", "orders2/a", "orders_/metadata/v1.json"]


def test_files_and_folders_go_and_are_counted(warehouse: Warehouse, sales: Path) -> None:
    expected = fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    assert run(task) == expected.files == 5
    assert left(sales) == DECOYS
    assert not (sales / "orders").exists()
    assert ledger(task) == expected
    assert outcome(task) == ("SUCCESS", f"5 files removed ({expected.bytes} bytes), and 5 folders")
    ((location, finished),) = sql("select location, finished_at is not null from purge_ledger")
    assert (location, finished) == (f"file://{sales}/orders", True)
    assert sql("select 1 from purge_intent") == []


def killing(monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """Die right before the `moment`-th step (of those that change something), or right after it."""
    step, is_after = divmod(moment, 2)
    calls = iter(range(10_000))

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            is_now = next(calls) == step
            if is_now and not is_after:
                raise Killed
            result = real(*arguments, **more)
            if is_now:
                raise Killed
            return result

        return call

    monkeypatch.setattr(os, "unlink", deadly(os.unlink))
    monkeypatch.setattr(os, "rmdir", deadly(os.rmdir))
    for name in ("announce", "settle", "close", "__init__"):
        monkeypatch.setattr(Ledger, name, deadly(getattr(Ledger, name)))


@pytest.mark.parametrize("every", [1, 4])
def test_each_file_counts_once_wherever_the_worker_dies(
    warehouse: Warehouse, sales: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Killed at one moment of each attempt: `every` = 1 at each possible moment, one after the other."""
    deaths = 0
    for start in range(0, 40, every):
        expected = fill(sales / "orders", NAMES)
        task = ask(warehouse, sales / "orders")
        for moment in (start, *range(start % 7, 20, 5)) if every > 1 else (start,):
            with monkeypatch.context() as deadly:
                killing(deadly, moment)
                try:
                    run(task)
                    break
                except Killed:
                    deaths += 1
                    assert outcome(task)[0] is None
        else:
            run(task)
        assert ledger(task) == expected, start
        assert (left(sales), (sales / "orders").exists()) == (DECOYS, False)
        assert outcome(task)[0] == "SUCCESS"
        sql("delete from task")
        sql("delete from procrastinate_jobs")
    assert deaths > 20


def test_a_run_whose_task_is_over_touches_nothing(warehouse: Warehouse, sales: Path) -> None:
    """Its worker died when all was done, before the queue knew: the place may be another table's by now."""
    fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    run(task)
    fill(sales / "orders", NAMES)
    for over in ("SUCCESS", "CANCELLED"):
        sql("update task set outcome = %s", over)
        with pytest.raises(JobAborted):
            run(task)
    arguments = {"profile": warehouse.storage_profile, "location": f"file://{sales}/orders", "task_id": str(task)}
    sql("delete from task")
    with pytest.raises(JobAborted):
        purge.purge_location(**arguments)
    assert len(left(sales / "orders")) == 5


def test_a_worker_that_was_thought_dead_ends_without_a_trace(
    warehouse: Warehouse, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    real, begun = LocalStorage.remove, iter(range(100))

    def overtaken(self: LocalStorage, found: Sequence[Found], **more: Any) -> Removed:
        if next(begun) == 1:  # it sleeps here, and another worker does the whole work
            assert run(task) == 5
            fill(sales / "orders", NAMES)  # by now of another table
        return real(self, found, **more)

    monkeypatch.setattr(LocalStorage, "remove", overtaken)
    with pytest.raises(attempts.Superseded):
        run(task)
    assert ledger(task) == expected
    assert outcome(task)[0] == "SUCCESS"
    assert len(left(sales / "orders")) == 5


def test_a_former_worker_that_settles_its_batch_late_does_not_end_the_present_one(
    warehouse: Warehouse, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was thought dead after it had removed a batch: another reads what it announced, and then it counts that."""
    expected = fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    settle, unsettled = Ledger.settle, Ledger.unsettled
    late: list[Callable[[], None]] = []

    def thought_dead(self: Ledger, gone: Sequence[Found]) -> None:
        late.append(partial(settle, self, gone))
        raise Killed

    def overtaken(self: Ledger) -> list[Found]:
        found = unsettled(self)
        for each in late:
            with pytest.raises(attempts.Superseded):
                each()
        return found

    with monkeypatch.context() as former:
        former.setattr(Ledger, "settle", thought_dead)
        with pytest.raises(Killed):
            run(task)
    monkeypatch.setattr(Ledger, "unsettled", overtaken)
    run(task)
    assert outcome(task)[0] == "SUCCESS"
    assert ledger(task) == expected
    assert outcome(task)[1] == f"5 files removed ({expected.bytes} bytes), and 5 folders"


def test_files_that_appear_meanwhile_are_removed_too(
    warehouse: Warehouse, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    real, late = LocalStorage.remove, iter(range(100))

    def remove(self: LocalStorage, found: Sequence[Found], **more: Any) -> Removed:
        removed = real(self, found, **more)
        if next(late) < 4:
            fill(sales / "orders", ["late/data/c.parquet"])
        return removed

    monkeypatch.setattr(LocalStorage, "remove", remove)
    assert run(task) > expected.files
    assert left(sales) == DECOYS


def test_somebody_who_writes_all_the_time_makes_it_fail_and_not_run_for_ever(
    warehouse: Warehouse, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    real = LocalStorage.remove

    def remove(self: LocalStorage, found: Sequence[Found], **more: Any) -> Removed:
        removed = real(self, found, **more)
        fill(sales / "orders", ["late"])
        return removed

    monkeypatch.setattr(LocalStorage, "remove", remove)
    with pytest.raises(StorageError, match="After 20 rounds something still remains at"):
        run(task)


def test_folders_around_that_are_empty_go_too(warehouse: Warehouse, sales: Path) -> None:
    expected = fill(sales / "by/year/orders", NAMES)
    task = ask(warehouse, sales / "by/year/orders", within=sales)
    run(task)
    assert ledger(task) == expected + Tally(folders=2)
    assert not (sales / "by").exists()
    assert left(sales) == DECOYS


@pytest.mark.parametrize(
    ("place", "kept"), [("sales/t", "/sales"), ("sales/by/year/t", "/sales"), ("sales2/t", ""), ("other/t", "")]
)
def test_the_folder_that_stays_is_the_namespaces_own_or_the_warehouses(
    warehouse: Warehouse, place: str, kept: str
) -> None:
    namespace = Namespace(warehouse=warehouse, properties={"location": f"{warehouse.location}/sales/"})
    found = locations.folder_that_stays(warehouse, namespace, f"{warehouse.location}/{place}")
    assert found == warehouse.location + kept


@pytest.fixture
def keeps_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    more = {"LAKEWARDEN__DELETION__PURGE_LEDGER": "paths", "LAKEWARDEN__DELETION__PURGE_LEDGER_PATHS": "4"}
    settings = config.read(os.environ | more)
    monkeypatch.setattr(config, "current", lambda: settings)


def test_the_ledger_keeps_paths_where_asked_up_to_the_limit(
    warehouse: Warehouse, sales: Path, keeps_paths: None
) -> None:
    fill(sales / "orders", [os.fsdecode(b"data/\xff"), *NAMES])
    task = ask(warehouse, sales / "orders")
    run(task)
    paths = [path for (path,) in sql("select path from purge_ledger_path where task_id = %s", task)]
    assert len(paths) == 4
    assert all(path.startswith("orders/") for path in paths)
    assert ledger(task).files == 6


def test_it_waits_until_its_time(warehouse: Warehouse, sales: Path) -> None:
    fill(sales / "orders", NAMES)
    at = datetime(2090, 1, 1, tzinfo=UTC)
    task = ask(warehouse, sales / "orders", not_before=at)
    ((job_at, task_at),) = sql(
        "select j.scheduled_at, t.scheduled_for from task t join procrastinate_jobs j on j.id = t.job_id "
        "where t.id = %s",
        task,
    )
    assert (job_at, task_at) == (at, at)


# what goes wrong with the store


def route(warehouse: Warehouse, rest: str) -> str:
    return f"/management/v1/warehouse/{warehouse.id}/{rest}"


def told(admin: AsgiClient, warehouse: Warehouse, task: object) -> dict[str, Any]:
    return dict(admin.get(route(warehouse, f"task/by-id/{task}")).json())


def act(admin: AsgiClient, warehouse: Warehouse, task: object, action: str) -> int:
    body = {"action": {"action-type": action}, "task-ids": [str(task)]}
    return admin.post(route(warehouse, "task/control"), body).status


def take(task: object) -> None:
    """What a worker does before it runs the job."""
    sql("update procrastinate_jobs set status = 'doing' where id = (select job_id from task where id = %s)", task)


def end(task: object, status: str) -> None:
    """What a worker does after it ran the job."""
    sql("select procrastinate_finish_job_v1(job_id, %s, false) from task where id = %s", status, task)


@pytest.mark.parametrize("is_empty", [False, True], ids=["missing", "an empty mount point"])
def test_a_store_that_is_away_loses_no_purge(
    admin: AsgiClient, warehouse: Warehouse, sales: Path, tmp_path: Path, *, is_empty: bool
) -> None:
    expected = fill(sales / "orders", NAMES)
    base = tmp_path / "lake"
    base.rename(tmp_path / "unmounted")
    if is_empty:
        base.mkdir()
    task = ask(warehouse, sales / "orders")
    with pytest.raises(StorageError, match="is it mounted" if is_empty else "does not exist"):
        run(task)
    assert told(admin, warehouse, task)["status"] == "SCHEDULED"
    assert ledger(task) == Tally()
    if is_empty:
        base.rmdir()
    (tmp_path / "unmounted").rename(base)
    assert run(task) == 5
    assert ledger(task) == expected


def test_a_store_that_fails_in_the_middle_is_counted_truly(
    warehouse: Warehouse, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    real, calls = os.unlink, iter(range(100))

    def fail(name: str, *, dir_fd: int) -> None:
        if next(calls) == 2:
            raise OSError(5, "Input/output error")
        real(name, dir_fd=dir_fd)

    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", fail)
        with pytest.raises(StorageError, match="Input/output error"):
            run(task)
    assert 2 <= ledger(task).files < 5
    assert ledger(task).files == expected.files - len(left(sales / "orders"))
    run(task)
    assert ledger(task) == expected


def fail_for_good(admin: AsgiClient, warehouse: Warehouse, task: object, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = {"queue-config": {"max-attempts": 1}}
    assert admin.post(route(warehouse, "task-queue/tabular_purge/config"), setting).status == 204

    def fail(_self: LocalStorage) -> None:
        raise StorageError("The disk is on fire")

    take(task)
    with monkeypatch.context() as broken:
        broken.setattr(LocalStorage, "ensure_there", fail)
        with pytest.raises(GivenUp):
            run(task)  # type: ignore[arg-type]
    end(task, "failed")
    assert told(admin, warehouse, task)["status"] == "FAILED"


def test_a_dead_letter_is_run_again_on_request(
    admin: AsgiClient, warehouse: Warehouse, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    fail_for_good(admin, warehouse, task, monkeypatch)
    assert act(admin, warehouse, task, "run-now") == 204
    assert run(task) == 5
    assert ledger(task) == expected
    details = told(admin, warehouse, task)
    assert details["execution-details"] == {
        "location": f"file://{sales}/orders",
        "files-removed": 5,
        "bytes-removed": expected.bytes,
        "folders-removed": 5,
    }
    assert [each["status"] for each in details["attempts"]] == ["SUCCESS", "FAILED"]


def test_a_dead_letter_that_is_cancelled_frees_the_place_and_leaves_the_files(
    admin: AsgiClient, warehouse: Warehouse, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(admin, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    place = f"file://{sales}/orders"
    task = ask(warehouse, sales / "orders")
    fail_for_good(admin, warehouse, task, monkeypatch)
    for asked in (place, f"{place}/inside"):
        assert lake.create_table("again", location=asked).status == 503
    assert lake.create_table("beside", location=f"{place}2x").status == 200
    fill(sales / "orders", NAMES)
    assert act(admin, warehouse, task, "cancel") == 204
    assert told(admin, warehouse, task)["message"].endswith("files that were not removed by then stay")
    assert len(left(sales / "orders")) == 5
    for path in (sales / "orders").rglob("*.*"):
        path.unlink()
    assert lake.create_table("again", location=place).status == 200


@pytest.mark.parametrize("swapped", ["orders", "."])
def test_a_location_that_became_a_link_fails_and_its_target_stays(
    warehouse: Warehouse, sales: Path, tmp_path: Path, swapped: str
) -> None:
    fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    folder = sales if swapped == "." else sales / swapped
    folder.rename(tmp_path / "lake" / "elsewhere")
    folder.symlink_to(tmp_path / "lake" / "elsewhere")
    with pytest.raises(OutOfReach, match="link"):
        run(task)
    assert len(list((tmp_path / "lake" / "elsewhere").rglob("*.parquet"))) == 3


def test_a_stop_in_the_middle_counts_what_went(
    admin: AsgiClient, warehouse: Warehouse, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    take(task)
    monkeypatch.setattr(purge, "HEARTBEAT_S", 0)
    real = LocalStorage.remove

    def remove(self: LocalStorage, found: Sequence[Found], **more: Any) -> Removed:
        assert act(admin, warehouse, task, "stop") == 204
        return real(self, found, **more)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "remove", remove)
        with pytest.raises(JobAborted):
            run(task)
    assert 0 < ledger(task).files < expected.files
    assert told(admin, warehouse, task)["status"] == "SCHEDULED"
    run(task)
    assert ledger(task) == expected


def test_the_lock_of_an_attempt_is_its_number(warehouse: Warehouse, sales: Path) -> None:
    """A late heartbeat of a former attempt changes nothing."""
    fill(sales / "orders", NAMES)
    task = ask(warehouse, sales / "orders")
    first = attempts._begin(task)
    attempts._begin(task)
    first.details["files-removed"] = 99
    with pytest.raises(attempts.Superseded):
        first.heartbeat()
    assert not attempts.end(first, "FAILED", "too late", outcome="FAILED")
    assert outcome(task) == (None, None)
    assert sql("select details from task") == [(None,)]
