"""Which processes still run for a data directory: they name it in their command line or their environment."""

import os
import time
from pathlib import Path

_PATIENCE_S = 15.0


def running_for(directory: Path) -> list[str]:
    """One line per such process, this one and zombies left out."""
    return [line for process in Path("/proc").iterdir() if (line := _line(process, str(directory)))]


def await_none(directory: Path) -> None:
    """Assert that they are all gone, at once or within the time that a clean shutdown takes."""
    deadline = time.monotonic() + _PATIENCE_S
    while left := running_for(directory):
        assert time.monotonic() < deadline, f"left running: {left}"
        time.sleep(0.05)


def _line(process: Path, directory: str) -> str:
    if not process.name.isdigit() or int(process.name) == os.getpid():
        return ""
    try:
        command = (process / "cmdline").read_bytes()
        if directory.encode() in command + (process / "environ").read_bytes():
            return f"{process.name} {command.replace(bytes(1), b' ').decode()}"
    except OSError:
        return ""
    return ""
