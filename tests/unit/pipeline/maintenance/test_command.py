"""`lakewarden maintenance` before Spark starts: options, credentials, and the lines that it prints."""

import json
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner

from lakewarden import config
from lakewarden.cli.commands import main
from lakewarden.cli.maintenance import run
from lakewarden.config.maintenance import MaintenanceConfig
from lakewarden.errors import BadRequest, InvalidArgument
from pipeline.maintenance.command import Options, done_line, planned_lines
from pipeline.maintenance.ledger import Done
from pipeline.maintenance.plan import Step
from pipeline.maintenance.policy import Operation, of_warehouse
from pipeline.maintenance.run import Planned
from pipeline.maintenance.survey import Count

CLIENT = {
    "catalog_uri": "https://lake/catalog",
    "oauth2_server_uri": "https://login/token",
    "client_id": "m",
    "client_secret": "s",
}


def options(tmp_path: Path, **settings: object) -> Options:
    config = MaintenanceConfig.model_validate(settings)
    return Options("postgresql://", config, None, tmp_path / "ready.json")


def test_the_client_comes_from_the_configuration(tmp_path: Path) -> None:
    catalog = options(tmp_path, **CLIENT).catalog("p/sales")
    assert (catalog.uri, catalog.warehouse, catalog.credential) == ("https://lake/catalog", "p/sales", "m:s")


def test_or_from_the_ready_file(tmp_path: Path) -> None:
    engine = {"client_id": "e", "client_secret": "t", "scope": "catalog"}
    ready = {"catalog_uri": "http://here/catalog", "token_endpoint": "http://here/token", "engine": engine}
    (tmp_path / "ready.json").write_text(json.dumps(ready))
    assert options(tmp_path).catalog("p/demo").credential == "e:t"


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="LAKEWARDEN__MAINTENANCE__CLIENT_SECRET must be set, too"):
        options(tmp_path, **{name: value for name, value in CLIENT.items() if name != "client_secret"}).catalog("w")
    with pytest.raises(BadRequest, match="nothing to log in with"):
        options(tmp_path).catalog("w")
    with pytest.raises(BadRequest, match="'orders' is not a valid table"):
        _ = replace(options(tmp_path), tables=("orders",)).wanted


def test_a_warehouses_policy_stands_above_the_default_one(tmp_path: Path) -> None:
    prefix = "lakewarden.maintenance."
    default = json.dumps({prefix + "small-files": "5", prefix + "manifests": "6"})
    single = json.dumps({"sales": {prefix + "manifests": "7"}})
    found = of_warehouse(options(tmp_path, policy=default, warehouse_policies=single).config, "p/sales")
    assert found == {prefix + "small-files": "5", prefix + "manifests": "7"}
    with pytest.raises(InvalidArgument, match="LAKEWARDEN__MAINTENANCE__POLICY: 'small'"):
        of_warehouse(options(tmp_path, policy='{"small": "5"}').config, "p/sales")


def test_without_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = config.current()
    without = whole.model_copy(update={"database": whole.database.model_copy(update={"url": None})})
    monkeypatch.setattr(config, "current", lambda: without)
    done = CliRunner().invoke(main, ["maintenance", "plan"])
    assert done.exit_code == 1
    assert "LAKEWARDEN__DATABASE__URL is not set" in done.stderr


def test_the_command_knows_all_operations() -> None:
    (option,) = [each for each in run.params if each.name == "operations"]
    assert set(option.type.choices) == set(Operation)  # type: ignore[attr-defined]


def test_lines_of_a_plan() -> None:
    steps = [
        Step(Operation.REWRITE_DATA_FILES, "2,000 data files are small", Count(1999)),
        Step(Operation.EXPIRE_SNAPSHOTS, "9 snapshots may expire", Count(30, 3_000_000)),
        Step(Operation.REMOVE_ORPHAN_FILES, "files that no snapshot refers to", None),
    ]
    assert list(planned_lines(Planned(("sales", "orders"), steps, Count(2000, 4_100_000)))) == [
        "sales.orders: 2,000 files, 4.1 MB",
        "  rewrite-data-files: 2,000 data files are small; 1,999 files fewer",
        "  expire-snapshots: 9 snapshots may expire; removes 30 files, 3.0 MB, at most",
        "  remove-orphan-files: files that no snapshot refers to",
    ]
    assert list(planned_lines(Planned(("a", "b"), live=Count(1, 1)))) == ["a.b: 1 files, 0.0 MB; nothing to do"]
    assert list(planned_lines(Planned(("a", "b"), problem="It is locked."))) == ["a.b: It is locked."]


def test_lines_of_what_was_done() -> None:
    warehouse = UUID(int=1)
    done = Done(warehouse, "a.b", Operation.REWRITE_DATA_FILES, "done", 10, 12.5, "r", 2000, 1, 4_000_000, 900_000)
    assert done_line(done) == "a.b: rewrite-data-files: 2,000 -> 1 files, 4.0 -> 0.9 MB, 2.5 s"
    failed = Done(warehouse, "a.b", Operation.REWRITE_MANIFESTS, "failed", 1, 2, "r", error="No answer.")
    assert done_line(failed) == "a.b: rewrite-manifests: failed: No answer., 1.0 s"
