"""Traces of a server and a worker, as a collector receives them over OTLP: request → access → SQL → store."""

import secrets
from collections.abc import Iterator

import pytest

from tests.integration.tracing.spans import above, named
from tests.integration.tracing.stack import CLIENT, KEY, SECRET, SERVER, made_lake, stack
from tests.servers import cloud_stub
from tests.servers.cloud_stub import Answer
from tests.servers.issuer import RunningIssuer, run_issuer

PRODUCER, CONSUMER = 4, 5


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    with run_issuer(tmp_path_factory.mktemp("traces") / "state") as running:
        yield running


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
