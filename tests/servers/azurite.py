"""A real Azurite for tests: Microsoft's emulator of blob storage, with accounts, keys and signatures that it checks.

It has no hierarchical namespace, no endpoint of ADLS and no signatures for directories.
"""

import os
import secrets
import shutil
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
import urllib3
from azure.storage.blob import BlobServiceClient, ContainerClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess
from tests.servers import npm

ACCOUNT: Final = "lakehouse"

_READY_WITHIN_S = 60.0


class AzuriteFailed(AssertionError):
    """It did not start; the message says why."""


@dataclass
class AzuriteServer:
    """A running server with one account; everything is in memory."""

    address: str
    certificate: Path | None = None
    """That signs itself: clients must be told to trust it."""
    key: str = field(default_factory=lambda: b64encode(secrets.token_bytes(64)).decode(), repr=False)

    @property
    def endpoint(self) -> str:
        """Of the account's blob service."""
        return f"http{'s' if self.certificate else ''}://{self.address}/{ACCOUNT}"

    def client(self, container: str, credential: str | None = None) -> ContainerClient:
        """The SDK's client: with a signature, or with the account's key."""
        service = BlobServiceClient(
            self.endpoint,
            credential or {"account_name": ACCOUNT, "account_key": self.key},
            retry_total=0,
            connection_verify=str(self.certificate) if self.certificate else True,
        )
        return service.get_container_client(container)

    def new_container(self) -> str:
        name = f"c-{uuid4()}"
        self.client(name).create_container()
        return name


def provide() -> Path:
    """The program, installed by npm if it is not in the cache yet."""
    return npm.provide("azurite", "azurite/dist/src/blob/main.js")


@contextmanager
def start(*, tls: Path | None = None) -> Iterator[AzuriteServer]:
    """A running server; with a folder for a certificate it speaks TLS only, and reads tokens of identities as well."""
    node = shutil.which("node")
    if node is None:
        raise AzuriteFailed("Azurite needs `node` on the PATH: install Node.js 20 or later.")
    port = free_port()
    certificate, key = _certificate(tls) if tls else (None, None)
    server = AzuriteServer(f"{HOST}:{port}", certificate)
    identities = [] if certificate is None else ["--oauth", "basic", "--cert", str(certificate), "--key", str(key)]
    with tempfile.TemporaryDirectory(prefix="lw-azurite-") as directory:
        process = ManagedProcess(
            "azurite",
            [
                node,
                provide(),
                "--silent",
                # it would send them to a host on the Internet
                "--disableTelemetry",
                "--inMemoryPersistence",
                "--skipApiVersionCheck",
                "--blobHost",
                HOST,
                "--blobPort",
                str(port),
                *identities,
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
    ca_certs = str(server.certificate) if server.certificate else None
    while True:
        if process.exited or time.monotonic() > deadline:
            raise AzuriteFailed(f"azurite {process.ended()} before it was ready:\n{process.log_text()}")
        try:
            with urllib3.PoolManager(retries=False, timeout=5.0, ca_certs=ca_certs) as http:
                answer = http.request("GET", f"{server.endpoint}?comp=list")
        except urllib3.exceptions.HTTPError:
            time.sleep(0.05)
            continue
        if "x-ms-request-id" in answer.headers:
            return


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for our address, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "azurite")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "azurite.pem", folder / "azurite.key"
    files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


@pytest.fixture(scope="session")
def azurite() -> Iterator[AzuriteServer]:
    """One for all tests of a process, each with a container of its own."""
    with start() as server:
        yield server
