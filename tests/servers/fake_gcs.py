"""A fake-gcs-server for tests: the API for objects of Google Cloud Storage in memory. It checks no token at all."""

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
import urllib3

from standalone.go_programs import GoProgram, provide
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess

FAKE_GCS: Final = GoProgram("fake-gcs-server", "fake-gcs-server", "github.com/fsouza/fake-gcs-server")
_READY_WITHIN_S = 60.0


class FakeGcsFailed(AssertionError):
    """It did not start, or refused a request; the message holds what it said."""


@dataclass(frozen=True)
class FakeGcsServer:
    endpoint: str

    def new_bucket(self) -> str:
        name = f"b-{uuid4()}"
        self.call("POST", "/storage/v1/b?project=tests", json.dumps({"name": name}))
        return name

    def call(self, method: str, path: str, body: str | None = None) -> bytes:
        answer = urllib3.request(method, f"{self.endpoint}{path}", body=body, timeout=10.0, retries=False)
        if answer.status >= 300:
            raise FakeGcsFailed(f"{method} {path} was answered with {answer.status}: {answer.data[:2000]!r}")
        return answer.data


@contextmanager
def start() -> Iterator[FakeGcsServer]:
    port = free_port()
    server = FakeGcsServer(f"http://{HOST}:{port}")
    with tempfile.TemporaryDirectory(prefix="lw-fake-gcs-") as directory:
        process = ManagedProcess(
            "fake-gcs-server",
            [
                provide(FAKE_GCS),
                "-scheme=http",
                f"-host={HOST}",
                f"-port={port}",
                f"-public-host={HOST}:{port}",
                f"-external-url={server.endpoint}",
                "-backend=memory",
                "-log-level=error",
            ],
            log=Path(directory, "fake-gcs.log"),
        )
        with process:
            _await_ready(server, process)
            yield server


def _await_ready(server: FakeGcsServer, process: ManagedProcess) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while True:
        if process.exited or time.monotonic() > deadline:
            raise FakeGcsFailed(f"fake-gcs-server {process.ended()} before it was ready:\n{process.log_text()}")
        try:
            if b"storage#" in server.call("GET", "/storage/v1/b?project=tests"):
                return
        except (urllib3.exceptions.HTTPError, FakeGcsFailed):
            time.sleep(0.05)


@pytest.fixture(scope="session")
def fake_gcs() -> Iterator[FakeGcsServer]:
    """One for all tests of a process, each with a bucket of its own."""
    with start() as server:
        yield server
