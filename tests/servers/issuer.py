"""The development issuer as a real process."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from standalone.issuer import seed
from standalone.issuer.seed import DevIdentities


@dataclass(frozen=True)
class RunningIssuer:
    url: str
    port: int
    state_dir: Path
    identities: DevIdentities
    process: subprocess.Popen[bytes]
    log: Path

    def post_token(
        self, auth: tuple[str, str] | None = None, bearer: str | None = None, /, **form: str
    ) -> requests.Response:
        headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
        return requests.post(f"{self.url}/token", data=form, auth=auth, headers=headers, timeout=30)

    def token_of(self, client_id: str, secret: str) -> str:
        answer = self.post_token((client_id, secret), grant_type="client_credentials")
        answer.raise_for_status()
        return str(answer.json()["access_token"])

    def engine_token(self) -> str:
        engine = self.identities.engine
        return self.token_of(engine.client_id, engine.client_secret)

    def admin_token(self) -> str:
        admin = self.identities.admin
        return self.token_of(admin.client_id, admin.client_secret)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def run_issuer(state_dir: Path, *, port: int | None = None, token_lifetime_s: int = 3600) -> Iterator[RunningIssuer]:
    """Start the issuer and wait until it answers; at the end TERM it and check that it leaves cleanly."""
    identities = seed.prepare(state_dir)
    port = port or free_port()
    log = state_dir.parent / f"issuer-{port}.log"
    command = [sys.executable, "-W", "error", "-m", "standalone.issuer", "--port", str(port)]
    command += ["--state-dir", str(state_dir), "--token-lifetime", str(token_lifetime_s)]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=os.environ | {"LAKEWARDEN__MODE": "development"}
        )
    try:
        _wait_until_ready(f"http://127.0.0.1:{port}", process, log)
        yield RunningIssuer(f"http://127.0.0.1:{port}", port, state_dir, identities, process, log)
    finally:
        process.terminate()
        try:
            assert process.wait(timeout=10) == 0, log.read_text()
        finally:
            process.kill()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the issuer ended with {process.returncode}: {log.read_text()}")
        try:
            requests.get(f"{url}/jwks", timeout=5).raise_for_status()
        except requests.ConnectionError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"the issuer did not answer within 30 s: {log.read_text()}")
