"""`lakewarden work` as a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def worker(log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "lakewarden.cli", "work"],
            stdout=output,
            stderr=output,
            env={**os.environ, **environment},
        )
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()
            child.wait(10)


def wait_for(condition: Callable[[], bool], *, what: str, log: Path) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen:\n{log.read_text()}"
        time.sleep(0.1)
