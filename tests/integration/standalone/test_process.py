"""ManagedProcess and the guardian, with real programs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from standalone.accounts import Account
from standalone.guardian import Guardian
from standalone.process import ManagedProcess

_PARENT = """
import sys, time
from pathlib import Path
from standalone.process import ManagedProcess
child = ManagedProcess("child", ["/bin/sh", "-c", sys.argv[2]], log=Path(sys.argv[1]))
child.start()
print(child.pid, flush=True)
time.sleep(60)
"""


def shell(script: str, *, log: Path, grace_s: float = 10.0) -> ManagedProcess:
    return ManagedProcess("shell", ["/bin/sh", "-c", script], log=log, grace_s=grace_s)


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def await_end(pid: int) -> None:
    deadline = time.monotonic() + 60
    while is_running(pid):
        assert time.monotonic() < deadline, f"{pid} still runs"
        time.sleep(0.02)


def await_text(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.02)
    return path.read_text().strip()


def test_exit_code_and_output_are_kept(tmp_path: Path) -> None:
    process = shell("echo one; echo two >&2; exit 3", log=tmp_path / "log")
    with process:
        assert process.wait(60) == 3
    assert process.log_tail() == "one\ntwo"
    assert process.ended() == "ended with exit code 3"


def test_log_tail_shows_this_start_only(tmp_path: Path) -> None:
    for word in ("first", "second"):
        with shell(f"echo {word}", log=tmp_path / "log") as process:
            process.wait(60)
    assert process.log_tail() == "second"
    assert (tmp_path / "log").read_text() == "first\nsecond\n"


def test_log_is_private(tmp_path: Path) -> None:
    with shell("true", log=tmp_path / "logs" / "log") as process:
        process.wait(60)
    assert (tmp_path / "logs" / "log").stat().st_mode & 0o777 == 0o600


def test_stop_asks_first(tmp_path: Path) -> None:
    process = shell("trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.05; done", log=tmp_path / "log")
    process.start()
    await_text(tmp_path / "log")
    process.stop()
    assert process.log_tail() == "up\nasked"
    assert process.exit_code == 0


def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    process = shell("trap '' TERM; echo up; while :; do sleep 0.05; done", log=tmp_path / "log", grace_s=0.3)
    process.start()
    await_text(tmp_path / "log")
    process.stop()
    assert process.ended() == "was killed by SIGKILL"


def test_stop_ends_what_the_program_left_behind(tmp_path: Path) -> None:
    process = shell(f"sleep 60 & echo $! > {tmp_path}/pid", log=tmp_path / "log")
    process.start()
    process.wait(60)
    grandchild = int(await_text(tmp_path / "pid"))
    process.stop()
    await_end(grandchild)


def test_missing_program_ends_with_a_sentence(tmp_path: Path) -> None:
    process = ManagedProcess("none", [tmp_path / "none"], log=tmp_path / "log")
    with process:
        assert process.wait(60) == 126
    assert process.log_tail() == f"cannot run {tmp_path}/none: No such file or directory"


@pytest.mark.parametrize("script", ["exec sleep 60", "trap '' TERM HUP INT; sleep 60"], ids=["plain", "stubborn"])
def test_child_ends_when_the_parent_is_killed(tmp_path: Path, script: str) -> None:
    command = [sys.executable, "-c", _PARENT, str(tmp_path / "log"), script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    await_end(child)


def test_grandchild_ends_when_the_parent_is_killed(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    command = [sys.executable, "-c", _PARENT, str(tmp_path / "log"), script]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        grandchild = int(await_text(tmp_path / "pid"))
        parent.kill()
    await_end(grandchild)


def test_guardian_that_was_killed_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guardian = Guardian()  # the shared one also guards what other tests have started
    monkeypatch.setattr("standalone.process.GUARDIAN", guardian)
    with shell("sleep 60", log=tmp_path / "one"):
        first = guardian._shell
        assert first is not None
        first.kill()
        first.wait()
        with shell("sleep 60", log=tmp_path / "two"):
            assert guardian._shell is not None
            assert guardian._shell is not first
    assert guardian._shell is None


def test_account_is_taken_for_good(tmp_path: Path) -> None:
    """Only root can lend an account; for others it must be refused, not ignored."""
    account = Account(name="somebody", uid=65534, gid=65534)
    process = ManagedProcess("id", ["/usr/bin/id"], log=tmp_path / "log", account=account)
    with process:
        code = process.wait(60)
    if os.geteuid() == 0:
        assert process.log_tail().startswith("uid=65534")
        assert "(root)" not in process.log_tail()
    else:
        assert code != 0


def test_signal_of_the_terminal_does_not_reach_the_child(tmp_path: Path) -> None:
    with shell("sleep 60", log=tmp_path / "log") as process:
        assert os.getsid(process.pid) == process.pid != os.getsid(0)
        assert process.exit_code is None
    assert process.exit_code == -signal.SIGTERM
