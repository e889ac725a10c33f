"""What a person sees when the demo cannot work, and what it leaves behind."""

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.demo.runs import Ready, run_demo

START_S = 60.0


def test_a_wrong_secret_is_one_sentence(dev_server: Ready, tmp_path: Path) -> None:
    run = run_demo(dev_server | {"engine": dev_server["engine"] | {"client_secret": "wrong"}}, tmp_path)
    assert run.code == 1
    assert run.errors.strip().startswith("The demo stopped: 401: the token endpoint")
    assert len(run.errors.strip().splitlines()) == 1


def test_an_unknown_warehouse_is_named(dev_server: Ready, tmp_path: Path) -> None:
    run = run_demo(dev_server | {"warehouse": dev_server["warehouse"] | {"name": "elsewhere"}}, tmp_path)
    assert run.code == 1
    assert "404" in run.errors
    assert "elsewhere" in run.errors
    assert "Traceback" not in run.errors


def test_a_server_that_is_gone_is_said(dev_server: Ready, tmp_path: Path) -> None:
    run = run_demo(dev_server | {"catalog_uri": "http://127.0.0.1:9/catalog"}, tmp_path)
    assert run.code == 1
    assert "Nothing answers at http://127.0.0.1:9/catalog" in run.errors
    assert "Is the server running?" in run.errors


@pytest.mark.parametrize("signal_name", ["KILL", "TERM", "INT"])
def test_spark_ends_with_the_job(dev_server: Ready, tmp_path: Path, signal_name: str) -> None:
    ready_file = tmp_path / "ready.json"
    ready_file.write_text(json.dumps(dev_server))
    with (tmp_path / "said").open("wb") as said:
        job = subprocess.Popen(
            [sys.executable, "-m", "demo", "--ready-file", str(ready_file)], stdout=said, stderr=said
        )
        try:
            java = _child(job)
            subprocess.run(["kill", f"-{signal_name}", str(job.pid)], check=True)
            job.wait(timeout=START_S)
        finally:
            job.kill()
            job.wait()
    _wait_until_gone(java)
    assert "Traceback" not in (tmp_path / "said").read_text()


def _child(job: "subprocess.Popen[bytes]") -> int:
    """The JVM's pid, as soon as the job has started it."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children")
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and job.poll() is None:
        for pid in map(int, children.read_text().split()):
            with suppress(FileNotFoundError, ProcessLookupError):  # it ended since it was listed
                if b"SparkSubmit" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        time.sleep(0.05)
    raise AssertionError("the job started no JVM")


def _wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + START_S
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, f"process {pid} outlived the job"
        time.sleep(0.05)
