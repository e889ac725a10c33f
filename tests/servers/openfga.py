"""A real OpenFGA for tests: the server on 127.0.0.1, in memory or on a PostgreSQL database, with a key of its own."""

import json
import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import urllib3

from standalone.go_programs import GoProgram, provide
from standalone.ports import HOST, free_ports
from standalone.process import ManagedProcess

OPENFGA: Final = GoProgram("openfga", "openfga", "github.com/openfga/openfga/cmd/openfga")
_READY_WITHIN_S = 60.0
_MIGRATED_WITHIN_S = 60


class OpenFgaFailed(AssertionError):
    """It did not start, or refused a request; the message holds what it said."""


@dataclass
class OpenFgaServer:
    """A running server; `api_key` is the only one that it accepts (`Authorization: Bearer`).

    It answers over HTTP at `url` and over gRPC at `grpc_address`.
    """

    url: str
    grpc_address: str
    directory: Path
    datastore: Mapping[str, str]
    flags: tuple[str, ...] = ()
    api_key: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    _process: ManagedProcess | None = field(default=None, repr=False)

    @property
    def process(self) -> ManagedProcess:
        if self._process is None:
            raise OpenFgaFailed("OpenFGA is stopped: call `start`.")
        return self._process

    def call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        """One request with the key; `OpenFgaFailed` for any answer above 299."""
        headers = {"Authorization": f"Bearer {self.api_key}"}
        with urllib3.PoolManager(retries=False, timeout=10.0) as http:
            answer = http.request(method, f"{self.url}{path}", json=body, headers=headers)
        if answer.status >= 300:
            raise OpenFgaFailed(f"{method} {path} answered {answer.status}: {answer.data[:2000]!r}")
        return dict(json.loads(answer.data or b"{}"))

    def create_store(self, name: str) -> str:
        """The id of a new store (named by 3 to 64 characters); stores do not see each other: a test may have its own."""
        return str(self.call("POST", "/stores", {"name": name})["id"])

    def start(self) -> None:
        """Start it (also again, on the same ports) and wait until it serves.

        In memory it has forgotten everything then. `OpenFgaFailed` with its words if it ends or is not ready in time.
        """
        self._process = ManagedProcess(
            "openfga",
            [provide(OPENFGA), "run", *self._flags()],
            log=self.directory / "openfga.log",
            # not in the arguments, which every user of the machine may read
            environment=os.environ | self.datastore | {"OPENFGA_AUTHN_PRESHARED_KEYS": self.api_key},
        )
        self._process.start()
        deadline = time.monotonic() + _READY_WITHIN_S
        while not self._is_ready():
            if self._process.exited or time.monotonic() > deadline:
                raise OpenFgaFailed(
                    f"openfga {self._process.ended()} before it was ready:\n{_told(self._process.log.read_text())}"
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """End it; connections to its ports are refused from now on. Twice does no harm."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _is_ready(self) -> bool:
        # with our key: another program on the port would not know it
        try:
            return self.call("GET", "/healthz") == {"status": "SERVING"} and "stores" in self.call("GET", "/stores")
        except (urllib3.exceptions.HTTPError, OpenFgaFailed):
            return False

    def _flags(self) -> list[str]:
        return [
            f"--http-addr={self.url.removeprefix('http://')}",
            f"--grpc-addr={self.grpc_address}",
            # each would listen on every interface
            "--playground-enabled=false",
            "--metrics-enabled=false",
            "--profiler-enabled=false",
            "--authn-method=preshared",
            "--log-format=json",
            "--log-level=warn",
            *self.flags,
        ]


@contextmanager
def start(postgres_url: str | None = None, *, flags: tuple[str, ...] = ()) -> Iterator[OpenFgaServer]:
    """A running server with a store in memory, or in the database `postgres_url`, which is migrated first.

    `flags` are further options of `openfga run`, such as `--resolve-node-limit=60`.
    """
    datastore = {"OPENFGA_DATASTORE_ENGINE": "memory"}
    if postgres_url is not None:
        datastore = {"OPENFGA_DATASTORE_ENGINE": "postgres", "OPENFGA_DATASTORE_URI": _with_ssl_mode(postgres_url)}
        _migrate(datastore)
    with tempfile.TemporaryDirectory(prefix="lw-openfga-") as directory:
        http_port, grpc_port = free_ports(2)
        server = OpenFgaServer(f"http://{HOST}:{http_port}", f"{HOST}:{grpc_port}", Path(directory), datastore, flags)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _migrate(datastore: Mapping[str, str]) -> None:
    done = subprocess.run(
        [provide(OPENFGA), "migrate", "--timeout=15s"],
        env=os.environ | datastore,
        capture_output=True,
        text=True,
        check=False,
        timeout=_MIGRATED_WITHIN_S,
    )
    if done.returncode != 0:
        raise OpenFgaFailed(f"openfga migrate ended with {done.returncode}:\n{_told(done.stdout + done.stderr)}")


def _told(output: str) -> str:
    """What it said, without the list of all flags that it adds to each mistake."""
    return output.partition("\nUsage:")[0].strip()


def _with_ssl_mode(url: str) -> str:
    """Its driver asks for TLS unless told otherwise; the PostgreSQL of the tests has none."""
    if "sslmode=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}sslmode=disable"
