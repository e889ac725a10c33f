import json
from pathlib import Path

import pytest

from standalone.errors import EmbeddedError
from standalone.ready import (
    AdminCredentials,
    EngineCredentials,
    PersonCredentials,
    ReadyInfo,
    ReadyWarehouse,
    read_ready_file,
    remove_ready_file,
    write_ready_file,
)

INFO = ReadyInfo(
    catalog_uri="http://127.0.0.1:1/catalog",
    management_uri="http://127.0.0.1:1/management",
    console_uri="http://127.0.0.1:1/console",
    token_endpoint="http://127.0.0.1:2/token",
    issuer="http://127.0.0.1:2",
    admin=AdminCredentials("admin", "a"),
    engine=EngineCredentials("engine", "e", "catalog"),
    person=PersonCredentials("dana", "d"),
    project_id="p",
    warehouse=ReadyWarehouse("w", "demo", "file:///w"),
    pid=7,
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_ready_file(INFO, tmp_path / "ready.json")
    assert read_ready_file(tmp_path / "ready.json") == INFO


def test_keys_are_the_promised_ones(tmp_path: Path) -> None:
    write_ready_file(INFO, tmp_path / "ready.json")
    content = json.loads((tmp_path / "ready.json").read_text())
    assert list(content) == [
        "catalog_uri",
        "management_uri",
        "console_uri",
        "token_endpoint",
        "issuer",
        "admin",
        "engine",
        "person",
        "project_id",
        "warehouse",
        "pid",
    ]
    assert list(content["engine"]) == ["client_id", "client_secret", "scope"]


def test_unwritable_place_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "ready.json").mkdir()
    with pytest.raises(EmbeddedError, match=r"ready\.json cannot be written: Is a directory"):
        write_ready_file(INFO, tmp_path / "ready.json")
    with pytest.raises(EmbeddedError, match=r"ready\.json cannot be replaced"):
        remove_ready_file(tmp_path / "ready.json")


def test_earlier_file_is_removed(tmp_path: Path) -> None:
    (tmp_path / "ready.json").write_text("{}")
    remove_ready_file(tmp_path / "ready.json")
    assert not (tmp_path / "ready.json").exists()
