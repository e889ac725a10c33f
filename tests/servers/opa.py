"""A real Open Policy Agent for tests, with the policies of `integrations/opa`."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import urllib3

from standalone.go_programs import GoProgram, provide
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess

OPA: Final = GoProgram("opa", "opa", "github.com/open-policy-agent/opa")
INTEGRATION: Final = Path(__file__).parents[2] / "integrations" / "opa"
_READY_WITHIN_S = 60.0


class OpaFailed(AssertionError):
    """It did not start, or refused a request; the message holds what it said."""


@dataclass(frozen=True)
class OpaServer:
    """A running OPA."""

    url: str
    process: ManagedProcess

    def ask(self, path: str, given: Mapping[str, object]) -> Any:
        """The value of the rule `path` such as "trino/allow" for an input; None when it is undefined."""
        answer = urllib3.request("POST", f"{self.url}/v1/data/{path}", json={"input": given}, timeout=30.0)
        if answer.status != 200:
            raise OpaFailed(f"{path} was answered with {answer.status}: {answer.data[:2000]!r}")
        return json.loads(answer.data).get("result")


@contextmanager
def start(settings: Mapping[str, str]) -> Iterator[OpaServer]:
    """A running server with the policies; `settings` are the environment variables that configure them."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="lw-opa-") as directory:
        process = ManagedProcess(
            "opa",
            [
                provide(OPA),
                "run",
                "--server",
                f"--addr={HOST}:{port}",
                "--log-level=error",
                "--disable-telemetry",
                INTEGRATION / "policies",
            ],
            log=Path(directory, "opa.log"),
            environment=os.environ | settings,
        )
        with process:
            server = OpaServer(f"http://{HOST}:{port}", process)
            _await_ready(server)
            yield server


def _await_ready(server: OpaServer) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while True:
        if server.process.exited or time.monotonic() > deadline:
            raise OpaFailed(f"opa {server.process.ended()} before it was ready:\n{server.process.log_text()}")
        try:
            # only ours has these policies: another program may own the port
            if server.ask("trino/user", {"context": {"identity": {"user": "probe"}}}) == "probe":
                return
        except (urllib3.exceptions.HTTPError, OpaFailed):
            time.sleep(0.05)


def run(*arguments: str) -> str:
    """`opa <arguments>` in the folder of the integration; its output. Raises OpaFailed with it."""
    done = subprocess.run(
        [provide(OPA), *arguments], cwd=INTEGRATION, capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode != 0:
        raise OpaFailed(f"opa {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
