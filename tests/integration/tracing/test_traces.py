"""Traces of a server and a worker, as a collector receives them over OTLP: request → access → SQL → store."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from lakewarden.config import PREFIX
from standalone.commands import AUDIENCE, lakewarden_command
from standalone.process import ManagedProcess
from tests.integration.tracing.spans import above, named
from tests.servers import cloud_stub, otlp
from tests.servers.cloud_stub import Answer
from tests.servers.issuer import RunningIssuer, run_issuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared
from tests.servers.otlp import Collector, Received

SECRET = "Leak-of-a-secret-name"  # in names, queries and properties
KEY = "Leak-of-the-collectors-key"
SERVER, CLIENT, PRODUCER, CONSUMER = 2, 3, 4, 5
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    with run_issuer(tmp_path_factory.mktemp("traces") / "state") as running:
        yield running


@dataclass
class Stack:
    server: LakewardenServer
    collector: Collector
    session: requests.Session
    token: str

    def ask(self, method: str, path: str, body: Any = None, *, parent: str | None = None, status: int = 200) -> Any:
        headers = {} if parent is None else {"traceparent": parent}
        answer = self.session.request(method, self.server.uri + path, json=body, headers=headers, timeout=60)
        assert answer.status_code == status, (method, path, answer.text)
        return answer.json() if answer.content else None

    def traced(self, method: str, path: str, body: Any = None) -> list[Received]:
        """All spans of a request whose caller asks for them."""
        trace, caller = secrets.token_hex(16), secrets.token_hex(8)
        self.ask(method, path, body, parent=f"00-{trace}-{caller}-01")
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


def test_a_trace_leads_from_the_request_to_the_store_and_tells_nothing_secret(issuer: RunningIssuer) -> None:
    with stack(issuer, TRACING__SAMPLE_RATIO="0") as running:
        base = made_lake(running)
        assert running.collector.spans == []  # nobody has asked for any
        table = f"{base}/namespaces/{SECRET}/tables/t"
        commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"note": SECRET}}]}
        running.ask("POST", table, commit)  # the decision is known from here on

        loaded = running.traced("GET", table)
        root = named(loaded, "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}")
        assert root.attributes["http.response.status_code"] == 200
        assert root.resource["service.name"] == "lakewarden"
        assert above(loaded, named(loaded, "SELECT", starts=True)) == [root.name]

        committed = running.traced("POST", table, commit)
        stored = named(committed, "store write_new")
        assert above(committed, stored)[-1] == "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"
        assert named(committed, "access tabular").kind == 1
        assert stored.kind == CLIENT
        assert [each for each in committed if each.attributes.get("db.operation.name") in {"UPDATE", "WITH", "INSERT"}]

        listed = running.traced("GET", f"{base}/namespaces?parent={SECRET}")
        assert named(listed, "GET /catalog/v1/{prefix}/namespaces").kind == SERVER
        managed = running.traced("GET", f"/management/v1/warehouse/{base.rpartition('/')[2]}")
        assert above(managed, named(managed, "access warehouse")) == ["GET /management/v1/warehouse/{warehouse_id}"]
        sql = [each for each in managed if "db.query.summary" in each.attributes]
        assert any("access warehouse" in above(managed, each) for each in sql)

        for hidden in (SECRET, KEY, running.token, str(running.server.local_root), "file:"):
            assert not [body for body in running.collector.bodies if hidden.encode() in body], hidden
        assert {each["api-key"] for each in running.collector.headers} == {KEY}

        again = secrets.token_hex(16)
        for _ in range(6):  # from the third on it is answered without being read
            running.ask("GET", table, parent=f"00-{again}-{'a' * 16}-01")
        unsampled = secrets.token_hex(16)
        running.ask("GET", table, parent=f"00-{unsampled}-{'a' * 16}-00")
        running.ask("GET", table, parent=f"00-{unsampled}-{'a' * 9000}-01")
        running.server.stop()  # sends what waits
        assert KEY not in running.server.log_text()
        roots = [each for each in running.collector.trace(again) if each.kind == SERVER]
        assert [each.attributes.get("http.response.status_code") for each in roots] == [200] * 6
        assert len({each.attributes["lakewarden.request_id"] for each in roots}) == 6
        assert not running.collector.trace(unsampled)


def test_a_collector_that_is_away_delays_no_request_and_no_stop(issuer: RunningIssuer) -> None:
    with stack(issuer, TRACING__SAMPLE_RATIO="1", TRACING__ENDPOINT="http://127.0.0.1:9/v1/traces") as running:
        for _ in range(20):
            running.ask("GET", "/management/v1/whoami")
        running.server.stop()


def test_a_worker_traces_tasks_and_deliveries_and_webhooks_get_the_trace(issuer: RunningIssuer) -> None:
    with cloud_stub.start() as receiver:
        receiver.answer("/hook", Answer(""))
        settings = {
            "TRACING__SAMPLE_RATIO": "1",
            "TRACING__MAX_TRACES_PER_S": "10000",
            "EVENTS__SINKS__HOOK__WEBHOOK__URL": f"{receiver.url}/hook",
            "EVENTS__SINKS__HOOK__WEBHOOK__SECRET": f"whsec_{SECRET}",
            "EVENTS__SINKS__HOOK__WEBHOOK__ALLOW_PRIVATE_ADDRESSES": "true",
            "EVENTS__SINKS__HOOK__FROM_OLDEST": "true",
        }
        with stack(issuer, **settings) as running:
            base = made_lake(running)
            running.ask("DELETE", f"{base}/namespaces/{SECRET}/tables/t?purgeRequested=true", status=204)
            with running.worker():
                sent = running.collector.eventually(lambda each: each.name == "POST webhook")
                task = running.collector.eventually(lambda each: each.name.startswith("task "))
            trace = running.collector.trace(sent.trace)
            assert named(trace, "deliver events").kind == PRODUCER
            assert task.kind == CONSUMER
            assert sent.resource["lakewarden.role"] == "worker"
            carried = {each.headers["traceparent"].split("-")[1] for each in receiver.asked}
            assert sent.trace in carried
            assert not [body for body in running.collector.bodies if SECRET.encode() in body]
