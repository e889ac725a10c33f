"""A real NATS server with JetStream for tests, on 127.0.0.1, with users, TLS or a small store if a test asks for them."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from standalone.go_programs import GoProgram, provide
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess

NATS: Final = GoProgram("nats-server", "nats", "github.com/nats-io/nats-server/v2")


class NatsFailed(AssertionError):
    """It did not start; the message holds what it said."""


@dataclass
class NatsServer:
    """`address` is `host:port`; its data survive a stop."""

    address: str
    process: ManagedProcess

    @property
    def url(self) -> str:
        return f"nats://{self.address}"

    def stop(self) -> None:
        self.process.stop()

    def start(self) -> None:
        self.process.start()
        _await_started(self.process)


@contextmanager
def start(more: str = "") -> Iterator[NatsServer]:
    """A server whose configuration also has the lines of `more`; stopped at the end."""
    program = provide(NATS)
    with tempfile.TemporaryDirectory(prefix="lw-nats-") as directory:
        port = free_port()
        settings = Path(directory, "nats.conf")
        settings.write_text(
            f'host: "{HOST}"\nport: {port}\n'
            f'jetstream {{ store_dir: "{directory}/jetstream", max_mem: 64M, max_file: 1G }}\n{more}\n'
        )
        process = ManagedProcess(
            "nats-server",
            [program, "-c", settings],
            log=Path(directory, "nats.log"),
            directory=Path(directory),
            grace_s=10.0,
        )
        with process:
            _await_started(process)
            yield NatsServer(f"{HOST}:{port}", process)


def _await_started(process: ManagedProcess, *, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while "Server is ready" not in process.log_text():
        if process.exited or time.monotonic() > deadline:
            raise NatsFailed(f"NATS did not start:\n{process.log_tail(lines=30)}")
        time.sleep(0.05)
