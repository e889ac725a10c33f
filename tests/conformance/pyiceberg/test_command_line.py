"""PyIceberg's command line, as a person types it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog.rest import RestCatalog

from pipeline.spark import catalogs

Command = Callable[..., Any]


@pytest.fixture
def command(rest_catalog: catalogs.RestCatalog, tmp_path: Path) -> Command:
    """`pyiceberg <arguments>`, with the catalog named in a configuration file; its answer, parsed from JSON."""
    configuration = {"catalog": {"default": {"type": "rest", **rest_catalog.properties()}}}
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump(configuration))

    def run(*arguments: str, succeeds: bool = True) -> Any:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("pyiceberg")), "--output", "json", *arguments],
            env=os.environ | {"PYICEBERG_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert (done.returncode == 0) is succeeds, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


def test_what_is_there_is_listed_and_described(command: Command, catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), pa.schema([("id", pa.int64())]), properties={"color": "red"})
    table.append(pa.table({"id": [1, 2]}))
    name = f"{namespace}.t"
    assert namespace in command("list")
    assert command("list", namespace) == [name]
    assert [field["name"] for field in command("schema", name)["fields"]] == ["id"]
    assert command("uuid", name) == {"uuid": str(table.metadata.table_uuid)}
    assert command("location", name) == table.location()
    assert command("properties", "get", "table", name, "color") == "red"
    assert command("describe", name)["metadata"]["properties"]["color"] == "red"
    assert command("list-refs", name)[0]["name"] == "main"


def test_changes_are_made(command: Command, catalog: RestCatalog, namespace: str) -> None:
    catalog.create_table((namespace, "t"), pa.schema([("id", pa.int64())]))
    command("create", "namespace", f"{namespace}_two")
    command("properties", "set", "namespace", f"{namespace}_two", "owner", "anna")
    assert catalog.load_namespace_properties(f"{namespace}_two")["owner"] == "anna"
    command("rename", f"{namespace}.t", f"{namespace}_two.u")
    command("properties", "set", "table", f"{namespace}_two.u", "color", "blue")
    assert catalog.load_table((f"{namespace}_two", "u")).properties["color"] == "blue"
    command("drop", "table", f"{namespace}_two.u")
    command("drop", "namespace", f"{namespace}_two")
    assert not catalog.namespace_exists(f"{namespace}_two")


def test_a_mistake_is_an_error_with_a_sentence(command: Command, namespace: str) -> None:
    answer = command("describe", f"{namespace}.missing", succeeds=False)
    assert "missing" in str(answer)
