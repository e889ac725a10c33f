import sys
from pathlib import Path

import pytest

from standalone import commands


def test_command_runs_in_this_environment() -> None:
    assert commands.lakewarden_command("work") == [sys.executable, "-m", "lakewarden.cli", "work"]


def test_environment_leaves_out_what_is_not_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"PATH": "/bin"})
    assert commands.environment() == {
        "PATH": "/bin",
        "LAKEWARDEN__MODE": "development",
        "LAKEWARDEN__SERVER__HOST": "127.0.0.1",
        "LAKEWARDEN__SERVER__PROCESSES": "1",
        "PYTHONUNBUFFERED": "1",
    }


def test_environment_holds_all_that_is_known() -> None:
    settings = commands.environment(
        database_url="postgresql://db",
        issuer="http://issuer",
        port=80,
        local_root=Path("/tables"),
        keys=Path("/keys"),
    )
    assert settings["LAKEWARDEN__DATABASE__URL"] == "postgresql://db"
    assert settings["LAKEWARDEN__OPENID__OIDC__ISSUER"] == "http://issuer"
    assert settings["LAKEWARDEN__OPENID__OIDC__AUDIENCE"] == "lakewarden"
    assert settings["LAKEWARDEN__CONSOLE__CLIENT_ID"] == "lakewarden-console"
    assert settings["LAKEWARDEN__SERVER__PORT"] == "80"
    assert settings["LAKEWARDEN__STORAGE__LOCAL_ROOTS"] == "/tables"
    assert settings["LAKEWARDEN__SECRETS__KEYS_FILE"] == "/keys"


@pytest.mark.parametrize(
    "name",
    [
        "LAKEWARDEN__DATABASE__URL",
        "lakewarden__openid__corp__issuer",
        "LAKEWARDEN__MODE",
        "LAKEWARDEN__SECRETS__KEYS",
    ],
)
def test_callers_setting_that_the_tree_depends_on_is_dropped(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("os.environ", {name: "theirs"})
    assert "theirs" not in commands.environment().values()


def test_callers_other_settings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"LAKEWARDEN__LOG__LEVEL": "DEBUG", "LAKEWARDEN__SERVER__PROCESSES": "2"})
    assert commands.environment()["LAKEWARDEN__LOG__LEVEL"] == "DEBUG"
    assert commands.environment()["LAKEWARDEN__SERVER__PROCESSES"] == "2"
