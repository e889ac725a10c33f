"""A real Azurite for tests: Microsoft's emulator of blob storage, with accounts, keys and signatures that it checks.

It has no hierarchical namespace, no endpoint of ADLS and no signatures for directories.
"""

import hashlib
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
import urllib3
from azure.storage.blob import BlobServiceClient, ContainerClient

from pipeline.spark.jars import cache_folder
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess
from tests.servers import staging

ACCOUNT: Final = "lakehouse"

_PINS = Path(__file__).parents[2] / "tools" / "azurite"
_PROGRAM = Path("node_modules/azurite/dist/src/blob/main.js")
_INSTALL_TIMEOUT_S = 900
_READY_WITHIN_S = 60.0


class AzuriteFailed(AssertionError):
    """It cannot be had, or did not start; the message says why."""


@dataclass
class AzuriteServer:
    """A running server with one account; everything is in memory."""

    address: str
    key: str = field(default_factory=lambda: b64encode(secrets.token_bytes(64)).decode(), repr=False)

    @property
    def endpoint(self) -> str:
        """Of the account's blob service."""
        return f"http://{self.address}/{ACCOUNT}"

    def client(self, container: str, credential: str | None = None) -> ContainerClient:
        """The SDK's client: with a signature, or with the account's key."""
        return BlobServiceClient(
            self.endpoint, credential or {"account_name": ACCOUNT, "account_key": self.key}, retry_total=0
        ).get_container_client(container)

    def new_container(self) -> str:
        name = f"c-{uuid4()}"
        self.client(name).create_container()
        return name


def provide() -> Path:
    """The folder with the program and all that it needs, installed by npm if it is not in the cache yet."""
    digest = hashlib.sha256((_PINS / "package-lock.json").read_bytes()).hexdigest()[:16]
    target = cache_folder() / "azurite" / digest
    if (target / _PROGRAM).is_file():
        return target
    npm = shutil.which("npm")
    if npm is None:
        raise AzuriteFailed(
            "Azurite must be installed, but there is no `npm` on the PATH: install Node.js 20 or later."
        )
    with staging.locked(target.parent) as folder:
        if not target.is_dir():
            place = folder / digest
            shutil.copytree(_PINS, place)
            done = subprocess.run(
                [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev"],
                cwd=place,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=_INSTALL_TIMEOUT_S,
            )
            if done.returncode != 0:
                raise AzuriteFailed(f"`npm ci` ended with {done.returncode}:\n{done.stdout[-2000:]}")
            place.rename(target)
    return target


@contextmanager
def start() -> Iterator[AzuriteServer]:
    node = shutil.which("node")
    if node is None:
        raise AzuriteFailed("Azurite needs `node` on the PATH: install Node.js 20 or later.")
    port = free_port()
    server = AzuriteServer(f"{HOST}:{port}")
    with tempfile.TemporaryDirectory(prefix="lw-azurite-") as directory:
        process = ManagedProcess(
            "azurite",
            [
                node,
                provide() / _PROGRAM,
                "--silent",
                # it would send them to a host on the Internet
                "--disableTelemetry",
                "--inMemoryPersistence",
                "--skipApiVersionCheck",
                "--blobHost",
                HOST,
                "--blobPort",
                str(port),
            ],
            log=Path(directory, "azurite.log"),
            environment=os.environ | {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{server.key}"},
            directory=Path(directory),
        )
        with process:
            _await_ready(server, process)
            yield server


def _await_ready(server: AzuriteServer, process: ManagedProcess) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while True:
        if process.exited or time.monotonic() > deadline:
            raise AzuriteFailed(f"azurite {process.ended()} before it was ready:\n{process.log_text()}")
        try:
            answer = urllib3.request("GET", f"{server.endpoint}?comp=list", timeout=5.0, retries=False)
        except urllib3.exceptions.HTTPError:
            time.sleep(0.05)
            continue
        if "x-ms-request-id" in answer.headers:
            return


@pytest.fixture(scope="session")
def azurite() -> Iterator[AzuriteServer]:
    """One for all tests of a process, each with a container of its own."""
    with start() as server:
        yield server
