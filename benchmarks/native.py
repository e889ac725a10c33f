"""Builds and runs the yardstick: the native server in benchmarks/yardstick that ours is compared with."""

import base64
import json
import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Self

import urllib3

from benchmarks.failures import NotServed
from benchmarks.load.requests import Endpoint
from benchmarks.machine import processes
from benchmarks.machine.parts import Parts
from benchmarks.target import Target
from standalone.process import ManagedProcess

_SOURCE = Path(__file__).parent / "yardstick"
_START_S = 30.0


class Yardstick:
    """A running one, beside `target`, a development server of this machine; it uses the same database and files."""

    def __init__(self, program: Path, target: Target, *, folder: Path) -> None:
        self._program = program
        self._target = target
        self._log = folder / "yardstick.log"

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    @property
    def parts(self) -> Parts:
        return Parts(self._process.pid, self._target.parts.postgres)

    def endpoint(self) -> Endpoint:
        ours = self._target.endpoint
        return replace(ours, host="127.0.0.1", port=self._port, base="", prefix=f"{self._target.warehouse_id}/")

    def restart(self) -> None:
        """Start it again, after the target: the database has another address then."""
        self._process.stop()
        self._start()

    def _start(self) -> None:
        self._process = ManagedProcess(
            "the yardstick",
            [self._program],
            log=self._log,
            environment=_environment(self._target),
            directory=Path("/"),
        )
        self._process.start()
        try:
            self._port = _port(self._process)
        except BaseException:
            self._process.stop()
            raise


def build() -> Path:
    """The program, built where downloads are kept. NotServed when there is no Rust here."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise NotServed("cargo is not installed (https://rustup.rs), so there is no yardstick to compare with")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("LAKEWARDEN_CACHE") or Path(base, "lakewarden"), "yardstick")
    command = [cargo, "build", "--quiet", "--release", "--locked", "--target-dir", str(folder)]
    command += ["--manifest-path", str(_SOURCE / "Cargo.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotServed(f"the yardstick could not be built: {done.stderr.strip()[-500:]}")
    return folder / "release" / "yardstick"


def _environment(target: Target) -> dict[str, str]:
    server = processes.environment_of(target.parts.server) if target.parts.server else {}
    url = server.get("LAKEWARDEN__DATABASE__URL")
    token = target.client.token()
    if not url or not token or target.warehouse_id is None or target.files is None:
        raise NotServed("the yardstick reads the database of `lakewarden dev`; this is another server")
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    issuer = claims["iss"]
    with urllib3.PoolManager(retries=False, timeout=30.0) as http:
        discovery = http.request("GET", f"{issuer}/.well-known/openid-configuration").json()
        keys = http.request("GET", discovery["jwks_uri"]).data.decode()
    audience = claims["aud"] if isinstance(claims["aud"], str) else claims["aud"][0]
    return {
        "YARDSTICK_DATABASE_URL": url,
        "YARDSTICK_JWKS": keys,
        "YARDSTICK_ISSUER": issuer,
        "YARDSTICK_AUDIENCE": audience,
        "YARDSTICK_LOCATION": f"file://{target.files}/yardstick",
    }


def _port(process: ManagedProcess) -> int:
    deadline = time.monotonic() + _START_S
    while not process.log_text().endswith("\n"):
        if process.exited or time.monotonic() > deadline:
            raise NotServed(process.obituary(when="while starting"))
        time.sleep(0.02)
    text = process.log_text().strip()
    if not text.isdecimal():
        raise NotServed(process.obituary(when="while starting"))
    return int(text)
