"""The guide docs/how-to/compose.md, followed as it is written: its blocks of `sh`, one after another in one shell."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

from tests.servers.docker_engine import Engine
from tests.servers.helm import ROOT

PAGE: Final = ROOT / "docs" / "how-to" / "compose.md"
STEPS: Final = ("start", "people", "warehouse", "pipeline", "rows", "events", "stop")
_BLOCKS: Final = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
_END: Final = "--- ended"


class StepFailed(AssertionError):
    """The message holds the commands and what they said."""


class Guide:
    """A shell: what one step sets, the next ones know."""

    def __init__(self, process: "subprocess.Popen[str]", errors: IO[str]) -> None:
        self._process = process
        self._errors = errors

    def follow(self, step: str) -> str:
        """What one of `STEPS` prints. Raises StepFailed if one of its commands fails."""
        return self.run(dict(zip(STEPS, _BLOCKS, strict=True))[step])

    def run(self, commands: str) -> str:
        """The same for commands of a test."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # what they run must not read the commands that follow
        self._process.stdin.write(f"{{\n{commands}\n}} </dev/null\necho; echo '{_END}'\n")
        self._process.stdin.flush()
        told: list[str] = []
        for line in self._process.stdout:
            if line == f"{_END}\n":
                return "".join(told)
            told.append(line)
        self._errors.seek(0)
        raise StepFailed(f"{commands}\n{''.join(told)}{self._errors.read()[-6000:]}")


@contextmanager
def followed(engine: Engine) -> Iterator[Guide]:
    """In the folder of the repository, on the engine's machine."""
    command = [*engine.enter, "bash", "-euo", "pipefail", "-s"]
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, text=True, cwd=ROOT, env=engine.environment
        ) as process,
    ):
        try:
            yield Guide(process, errors)
        finally:
            process.kill()
