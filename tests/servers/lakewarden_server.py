"""A whole Lakewarden as an outside program: `lakewarden dev` in a process of its own, known by its ready file."""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import urllib3

from standalone.process import ManagedProcess
from standalone.ready import AdminCredentials, EngineCredentials, ReadyInfo, read_ready_file

DEV = (sys.executable, "-m", "lakewarden.cli", "dev")


@dataclass(frozen=True)
class DevServer:
    """A running `lakewarden dev`; `logs` of its parts lie below `data_dir`."""

    info: ReadyInfo
    data_dir: Path
    process: ManagedProcess

    @property
    def database_url(self) -> str:
        """As the reference of the development server says how to find it."""
        port = (self.data_dir / "postgres" / "postmaster.pid").read_text(encoding="utf-8").splitlines()[3]
        password = (self.data_dir / "postgres.password").read_text(encoding="utf-8").strip()
        return f"postgresql://postgres:{password}@127.0.0.1:{port}/lakewarden"

    def token(self, client: AdminCredentials | EngineCredentials) -> str:
        """An access token of one of its clients, by client credentials."""
        form = {
            "grant_type": "client_credentials",
            "client_id": client.client_id,
            "client_secret": client.client_secret,
            "scope": self.info.engine.scope,
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        answer = urllib3.request("POST", self.info.token_endpoint, body=urlencode(form), headers=headers)
        return str(json.loads(answer.data)["access_token"])


class DevServerFailed(AssertionError):
    """It ended, or was not ready in time; the message holds what it said."""


@contextmanager
def temporary_data_dir() -> Iterator[Path]:
    """A data directory that PostgreSQL's user may enter (pytest's own are closed to it), gone at the end."""
    directory = Path(tempfile.mkdtemp(prefix="lw-dev-"))
    directory.chmod(0o711)
    try:
        yield directory / "data"
    finally:
        shutil.rmtree(directory)


def launch_dev(
    data_dir: Path,
    *,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = DEV,
) -> ManagedProcess:
    """Start `lakewarden dev` without waiting for it; its words go to `<data_dir>.log`. The caller stops it."""
    ready_file = data_dir / "ready.json"
    process = ManagedProcess(
        "lakewarden dev",
        [*command, "--data-dir", str(data_dir), "--ready-file", str(ready_file), *arguments],
        log=data_dir.with_name(f"{data_dir.name}.log"),
        environment=environment,
        grace_s=60.0,
    )
    process.start()
    return process


def await_ready(process: ManagedProcess, data_dir: Path, *, timeout_s: float = 120.0) -> ReadyInfo:
    """The content of the ready file, once it is there. `DevServerFailed` with its words if it will not be."""
    ready_file = data_dir / "ready.json"
    deadline = time.monotonic() + timeout_s
    while True:
        ended = process.exited
        if ready_file.exists() and (info := read_ready_file(ready_file)).pid == process.pid:
            return info
        if ended or time.monotonic() > deadline:
            raise DevServerFailed(f"lakewarden dev {process.ended()} before it was ready:\n{process.log_text()}")
        time.sleep(0.05)


@contextmanager
def start_dev(
    *,
    data_dir: Path | None = None,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = DEV,
    timeout_s: float = 120.0,
) -> Iterator[DevServer]:
    """A running server, stopped at the end; without `data_dir` in a temporary one.

    `arguments` are further options of the command, `environment` its whole environment (else ours).
    """
    if data_dir is None:
        with (
            temporary_data_dir() as own,
            start_dev(
                data_dir=own, arguments=arguments, environment=environment, command=command, timeout_s=timeout_s
            ) as server,
        ):
            yield server
        return
    process = launch_dev(data_dir, arguments=arguments, environment=environment, command=command)
    try:
        info = await_ready(process, data_dir, timeout_s=timeout_s)
        yield DevServer(info, data_dir, process)
    finally:
        process.stop()
