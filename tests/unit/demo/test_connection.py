import json
from pathlib import Path
from typing import Any

import pytest

from demo.connection import Connection
from lakewarden.errors import BadRequest


def ready() -> dict[str, Any]:
    return {
        "catalog_uri": "http://h/catalog",
        "console_uri": "http://h/console",
        "token_endpoint": "http://h/token",
        "engine": {"client_id": "engine", "client_secret": "hidden", "scope": "lakewarden"},
        "warehouse": {"id": "w1", "name": "demo", "location": "file:///w"},
        "pid": 1,
        "of_a_later_version": True,
    }


def test_a_ready_file_gives_the_catalogs_settings(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    file.write_text(json.dumps(ready()))
    assert Connection.read(file).catalog.properties() == {
        "type": "rest",
        "uri": "http://h/catalog",
        "warehouse": "demo",
        "credential": "engine:hidden",
        "oauth2-server-uri": "http://h/token",
        "scope": "lakewarden",
    }


def test_the_secret_is_not_shown() -> None:
    assert "hidden" not in repr(Connection.parse(ready()))


@pytest.mark.parametrize("field", ["catalog_uri", "engine", "warehouse"])
def test_a_missing_field_is_named(field: str) -> None:
    content = ready()
    del content[field]
    with pytest.raises(BadRequest, match=field):
        Connection.parse(content)


@pytest.mark.parametrize(("content", "said"), [("{", "is not JSON"), ("[]", "must hold a JSON object")])
def test_a_file_of_another_form_is_refused(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "ready.json"
    file.write_text(content)
    with pytest.raises(BadRequest, match=said):
        Connection.read(file)


def test_a_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"gone\.json cannot be read: No such file"):
        Connection.read(tmp_path / "gone.json")
