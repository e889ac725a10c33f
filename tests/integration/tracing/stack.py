"""A server whose traces a collector receives, and what its caller asks."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from lakewarden.config import PREFIX
from standalone.commands import AUDIENCE, lakewarden_command
from standalone.process import ManagedProcess
from tests.servers import otlp
from tests.servers.issuer import RunningIssuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared
from tests.servers.otlp import Collector, Received

SECRET = "Leak-of-a-secret-name"  # in names, queries and properties
KEY = "Leak-of-the-collectors-key"
SERVER, CLIENT = 2, 3
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


@dataclass
class Stack:
    server: LakewardenServer
    collector: Collector
    session: requests.Session
    token: str

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        parent: str | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        traced = {} if parent is None else {"traceparent": parent}
        answer = self.session.request(
            method, self.server.uri + path, json=body, headers=traced | dict(headers or {}), timeout=60
        )
        assert answer.status_code == status, (method, path, answer.text)
        return answer.json() if answer.content else None

    def traced(
        self, method: str, path: str, body: Any = None, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> list[Received]:
        """All spans of a request whose caller asks for them."""
        trace, caller = secrets.token_hex(16), secrets.token_hex(8)
        self.ask(method, path, body, parent=f"00-{trace}-{caller}-01", status=status, headers=headers)
        root = self.collector.eventually(lambda each: each.trace == trace and each.kind == SERVER)
        assert root.parent == caller
        # what belongs to it was sent with it, or before
        return self.collector.trace(trace)

    def worker(self) -> ManagedProcess:
        return ManagedProcess(
            "lakewarden work",
            lakewarden_command("work"),
            log=self.server.log.with_name("work.log"),
            environment=self.server._environment(),
            directory=Path("/"),
            grace_s=30.0,
        )


@contextmanager
def stack(issuer: RunningIssuer, **settings: str) -> Iterator[Stack]:
    with otlp.start() as collector:
        own = {
            "OPENID__OIDC__ISSUER": issuer.url,
            "OPENID__OIDC__AUDIENCE": AUDIENCE,
            "TRACING__ENDPOINT": collector.url,
            "TRACING__HEADERS": f"api-key={KEY}",
            "LOG__FORMAT": "json",
        } | settings
        with (
            prepared({f"{PREFIX}{name}": value for name, value in own.items()}) as server,
            requests.Session() as session,
        ):
            server.bootstrap(f"oidc~{issuer.identities.admin.client_id}")
            server.start()
            token = issuer.admin_token()
            session.headers["authorization"] = f"Bearer {token}"
            yield Stack(server, collector, session, token)


def made_lake(running: Stack) -> str:
    """A warehouse with a namespace and a table; the path of the catalog below which they are."""
    profile = {"type": "local", "base-path": str(running.server.local_root / "lake")}
    asked = {"warehouse-name": "lake", "storage-profile": profile}
    base = f"/catalog/v1/{running.ask('POST', '/management/v1/warehouse', asked, status=201)['id']}"
    running.ask("POST", f"{base}/namespaces", {"namespace": [SECRET]})
    running.ask("POST", f"{base}/namespaces/{SECRET}/tables", {"name": "t", "schema": SCHEMA})
    return base
