"""`lakewarden dev` as a process tree: real PostgreSQL, stand-ins for the commands that it starts."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from standalone.process import ManagedProcess
from tests.integration.standalone.leftovers import await_none, running_for
from tests.servers.lakewarden_server import await_ready, launch_dev, start_dev

COMMAND = (sys.executable, str(Path(__file__).with_name("stand_in_dev.py")))
STEPS = ("initdb", "migrate", "issuer", "bootstrap", "serve", "work")


@pytest.fixture
def data_dir(open_dir: Path) -> Iterator[Path]:
    yield open_dir / "data"
    await_none(open_dir)


def environment(data_dir: Path, **extra: str) -> dict[str, str]:
    return os.environ | {"STAND_IN_CALLS": str(data_dir.with_name("calls"))} | extra


def launch(data_dir: Path, *arguments: str, **extra: str) -> ManagedProcess:
    return launch_dev(data_dir, arguments=arguments, environment=environment(data_dir, **extra), command=COMMAND)


def refused(data_dir: Path, *arguments: str, **extra: str) -> str:
    """What it says when it refuses: exit code 1, no traceback, nothing left running, no ready file."""
    process = launch(data_dir, *arguments, **extra)
    assert process.wait(60) == 1, process.log_text()
    text = process.log_text()
    process.stop()
    assert "Traceback" not in text
    assert not (data_dir / "ready.json").exists()
    await_none(data_dir)
    return text.partition("Error: ")[2].strip()


def calls(data_dir: Path) -> list[tuple[str, Any]]:
    lines = data_dir.with_name("calls").read_text().splitlines() if data_dir.with_name("calls").exists() else []
    return [(name, json.loads(content)) for name, _, content in (line.partition(" ") for line in lines)]


def await_call(data_dir: Path, name: str) -> None:
    deadline = time.monotonic() + 60
    while name not in [call for call, _ in calls(data_dir)]:
        assert time.monotonic() < deadline, f"{name} was not started"
        time.sleep(0.02)


def await_step(data_dir: Path, step: str) -> None:
    if step != "initdb":
        await_call(data_dir, step)
        return
    while not (data_dir / "postgres.new" / "data").exists():
        time.sleep(0.01)


def test_ready_file_holds_everything_that_a_client_needs(data_dir: Path) -> None:
    with start_dev(data_dir=data_dir, environment=environment(data_dir), command=COMMAND) as server:
        content = json.loads((data_dir / "ready.json").read_text())
        assert (data_dir / "ready.json").stat().st_mode & 0o777 == 0o600
        base, issuer = content["catalog_uri"].removesuffix("/catalog"), content["issuer"]
        assert urllib3.request("GET", f"{base}/health").status == 200
        assert content == {
            "catalog_uri": f"{base}/catalog",
            "management_uri": f"{base}/management",
            "console_uri": f"{base}/console",
            "token_endpoint": f"{issuer}/token",
            "issuer": issuer,
            "admin": {"client_id": "lakewarden-admin", "client_secret": server.info.admin.client_secret},
            "engine": {
                "client_id": "lakewarden-engine",
                "client_secret": server.info.engine.client_secret,
                "scope": "catalog",
            },
            "person": {"username": "dana", "password": server.info.person.password},
            "project_id": "00000000-0000-0000-0000-000000000000",
            "warehouse": {"id": "w-1", "name": "demo", "location": f"file://{data_dir}/warehouse/demo"},
            "pid": server.process.pid,
        }
    assert server.process.exit_code == 0
    assert not (data_dir / "ready.json").exists()


def test_commands_run_in_order_with_their_settings(data_dir: Path) -> None:
    extra = {"LAKEWARDEN__LOG__LEVEL": "DEBUG", "LAKEWARDEN__DATABASE__URL": "postgresql://elsewhere/"}
    with start_dev(data_dir=data_dir, environment=environment(data_dir, **extra), command=COMMAND) as server:
        # the worker has nothing to be waited for: its place among the requests is open
        seen = [(name, content) for name, content in calls(data_dir) if name != "work"]
        await_call(data_dir, "work")
        issuer, base = server.info.issuer, server.info.catalog_uri.removesuffix("/catalog")
    assert [name for name, _ in seen] == [
        "migrate",
        "issuer",
        "bootstrap",
        "serve",
        "/token",
        "/management/v1/warehouse",
        "/management/v1/user",
        "/management/v1/warehouse/w-1/grants",
        "/management/v1/user",
        "/management/v1/warehouse/w-1/grants",
        "/management/v1/user",
        "/management/v1/server/grants",
        "/management/v1/project/grants",
    ]
    assert seen[1][1]["arguments"] == ["--port", issuer.rpartition(":")[2], "--state-dir", f"{data_dir}/issuer"]
    assert seen[2][1]["arguments"][:2] == ["--admin", "oidc~lakewarden-admin"]
    settings = seen[3][1]["settings"]
    assert settings.pop("LAKEWARDEN__DATABASE__URL").startswith("postgresql://postgres:")
    assert settings == {
        "LAKEWARDEN__MODE": "development",
        "LAKEWARDEN__SERVER__HOST": "127.0.0.1",
        "LAKEWARDEN__SERVER__PROCESSES": "1",
        "LAKEWARDEN__SERVER__PORT": base.rpartition(":")[2],
        "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer,
        "LAKEWARDEN__OPENID__OIDC__AUDIENCE": "lakewarden",
        "LAKEWARDEN__CONSOLE__CLIENT_ID": "lakewarden-console",
        "LAKEWARDEN__STORAGE__LOCAL_ROOTS": f"{data_dir}/warehouse",
        "LAKEWARDEN__SECRETS__KEYS_FILE": f"{data_dir}/secrets.keys",
        "LAKEWARDEN__LOG__LEVEL": "DEBUG",
    }
    assert json.loads(seen[7][1]["body"])["writes"] == [
        {"privilege": name, "principal": {"user": "oidc~lakewarden-engine"}}
        for name in ("create", "modify", "select", "describe")
    ]
    assert seen[7][1]["authorization"] == "Bearer token-of-admin"


def test_second_run_keeps_addresses_and_credentials_and_finds_its_warehouse(data_dir: Path) -> None:
    with start_dev(data_dir=data_dir, environment=environment(data_dir), command=COMMAND) as first:
        pass
    known = environment(data_dir, STAND_IN_KNOWN_WAREHOUSE="1")
    with start_dev(data_dir=data_dir, environment=known, command=COMMAND) as second:
        assert second.info.warehouse.id == "w-old"
    assert second.info.catalog_uri == first.info.catalog_uri
    assert second.info.token_endpoint == first.info.token_endpoint
    assert second.info.engine == first.info.engine


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_stops_it_cleanly(data_dir: Path, number: signal.Signals) -> None:
    with start_dev(data_dir=data_dir, environment=environment(data_dir), command=COMMAND) as server:
        os.kill(server.process.pid, number)
        assert server.process.wait(60) == 0
        assert running_for(data_dir) == []
        assert "Traceback" not in server.process.log_text()
    assert "received fast shutdown request" in (data_dir / "logs" / "postgres.log").read_text()


@pytest.mark.parametrize("step", STEPS)
def test_term_in_the_middle_of_the_start_leaves_nothing(data_dir: Path, step: str) -> None:
    process = launch(data_dir, STAND_IN_SLOW=step)
    await_step(data_dir, step)
    os.kill(process.pid, signal.SIGTERM)
    # the worker is not waited for, so the server may have become ready before the signal came
    assert process.wait(60) in ({0, 130} if step == "work" else {130})
    assert running_for(data_dir) == []
    assert "Traceback" not in process.log_text()
    process.stop()


@pytest.mark.parametrize("step", [*STEPS, "ready"])
def test_kill_at_any_step_leaves_nothing_and_the_next_run_works(data_dir: Path, step: str) -> None:
    process = launch(data_dir, STAND_IN_SLOW=step)
    if step == "ready":
        await_ready(process, data_dir)
    else:
        await_step(data_dir, step)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    with start_dev(data_dir=data_dir, environment=environment(data_dir), command=COMMAND) as server:
        assert len([line for line in running_for(data_dir) if "postgres -D" in line]) == 1
    assert server.process.exit_code == 0
    process.stop()


def test_second_start_at_once_names_the_first(data_dir: Path) -> None:
    with start_dev(data_dir=data_dir, environment=environment(data_dir), command=COMMAND) as server:
        second = launch_dev(
            data_dir, environment=environment(data_dir), command=(*COMMAND, "--port", "1"), arguments=()
        )
        assert second.wait(60) == 1
        assert second.log_text().strip() == (
            f"Error: Another Lakewarden (pid {server.process.pid}) is using {data_dir}: "
            f"stop it with `kill {server.process.pid}`, or give this one its own directory with --data-dir."
        )
        second.stop()
        assert not server.process.exited
        assert (data_dir / "ready.json").exists()


def test_taken_port_names_the_holder(data_dir: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        text = refused(data_dir, "--port", port)
    assert text.startswith(f"Port {port} is taken by ")
    assert text.endswith(f"(pid {os.getpid()}): stop it, or give another port with --port.")


def test_given_port_is_used(data_dir: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ("--port", str(port))
    with start_dev(
        data_dir=data_dir, environment=environment(data_dir), command=COMMAND, arguments=arguments
    ) as server:
        assert server.info.catalog_uri == f"http://127.0.0.1:{port}/catalog"


def test_other_kind_of_warehouse_is_refused(data_dir: Path) -> None:
    assert refused(data_dir, "--warehouse", "gcs") == "--warehouse gcs is not known: use file or s3."


def test_data_dir_that_is_a_file_is_refused(data_dir: Path) -> None:
    data_dir.write_text("")
    process = launch_dev(data_dir, environment=environment(data_dir), command=COMMAND)
    assert process.wait(60) == 1
    assert process.log_text().startswith(f"Error: {data_dir} cannot be used: File exists.")
    process.stop()


@pytest.mark.parametrize(("step", "log"), [("migrate", "migrate"), ("issuer", "issuer"), ("serve", "server")])
def test_command_that_fails_shows_the_end_of_its_log(data_dir: Path, step: str, log: str) -> None:
    text = refused(data_dir, STAND_IN_FAIL=step)
    assert text.startswith(f"`{log}` ended with exit code 1 ")
    assert text.endswith(f"The end of its log {data_dir}/logs/{log}.log:\n  Error: {step} has been told to fail")


@pytest.mark.parametrize("part", ["/postgres -D", ".py serve", ".py work", ".py issuer"])
def test_part_that_dies_ends_everything_with_a_sentence(data_dir: Path, part: str) -> None:
    with start_dev(data_dir=data_dir, environment=environment(data_dir), command=COMMAND) as server:
        await_call(data_dir, "work")
        victim = next(line for line in running_for(data_dir) if part in line)
        os.kill(int(victim.split()[0]), signal.SIGKILL)
        assert server.process.wait(60) == 1
    text = server.process.log_text().partition("Error: ")[2]
    assert " was killed by SIGKILL unexpectedly. The end of its log " in text
    assert "Traceback" not in text


def test_ready_file_in_a_missing_directory_is_refused(data_dir: Path) -> None:
    missing = data_dir.with_name("missing") / "ready.json"
    text = refused(data_dir, "--ready-file", str(missing))
    assert text == f"The ready file {missing} cannot be written: its directory does not exist."


def test_stop_of_its_terminal_group_is_orderly(data_dir: Path) -> None:
    """Ctrl-C twice in quick succession: the second must not disturb the stopping."""
    with start_dev(data_dir=data_dir, environment=environment(data_dir), command=COMMAND) as server:
        for _ in range(2):
            os.killpg(server.process.pid, signal.SIGINT)
            time.sleep(0.02)
        assert server.process.wait(60) == 0
        assert "Traceback" not in server.process.log_text()


def test_directory_that_cannot_be_written_is_refused_to_a_plain_user(open_dir: Path) -> None:
    """Root may write everywhere, so it lends itself another user's rights for this."""
    closed = open_dir / "closed"
    closed.mkdir(mode=0o755)
    if os.geteuid() != 0:
        closed.chmod(0o555)
    # everything is loaded first: the interpreter itself may lie where the other user cannot go
    program = f"""
import os, sys
from pathlib import Path
from standalone.dev import run
from standalone.options import DevOptions
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(run(DevOptions(data_dir=Path({str(closed / "data")!r}), ready_file=Path({str(open_dir / "ready.json")!r}))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 1
    assert done.stderr == (
        f"Error: {closed / 'data'} cannot be used: Permission denied. "
        "Start as the owner of the data directory, or give another one with --data-dir.\n"
    )
