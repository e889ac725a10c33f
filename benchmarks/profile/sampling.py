"""Samples from outside who holds the interpreter's lock in a server's processes while it is driven.

Samples of all threads would count those that wait for work, or for the disk, as if they cost something.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.failures import BenchmarkError
from benchmarks.profile.rules import Shares, shares

_PER_SECOND = 250


class Sampling:
    """py-spy beside a process and its children for `seconds`; `shares` waits for its end."""

    def __init__(self, pid: int, *, seconds: float) -> None:
        program = shutil.which("py-spy", path=str(Path(sys.executable).parent))
        if program is None:
            raise BenchmarkError("py-spy is not installed: run `make setup`")
        self._folder = tempfile.TemporaryDirectory(prefix="lakewarden-profile-")
        self._output = Path(self._folder.name) / "stacks"
        command = [
            program,
            "record",
            "--pid",
            str(pid),
            "--subprocesses",
            "--format",
            "raw",
            "--full-filenames",
            "--gil",
        ]
        command += ["--rate", str(_PER_SECOND), "--duration", str(max(1, round(seconds))), "--output"]
        self._process = subprocess.Popen(
            [*command, str(self._output)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def shares(self) -> Shares:
        """Raises BenchmarkError when the processes may not be looked into."""
        with self._folder:
            _, said = self._process.communicate()
            if not self._output.exists():
                raise BenchmarkError(f"py-spy could not look into the server: {said.strip()[-300:]}")
            return shares(self._output.read_text(errors="replace").splitlines())
