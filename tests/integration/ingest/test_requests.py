"""The HTTP routes of the gateway: what they take, answer and refuse, and the headers of the rate limit."""

import gzip
import json
import time
from typing import Any

import pytest

from ingest.api import requests
from ingest.models import IngestBatch, IngestFlushRequest, IngestLogHead, IngestPipeline
from ingest.services import log
from lakewarden import config
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.ingest.batches import logged, run
from tests.integration.ingest.changed import create_table, limits, revoke
from tests.integration.ingest.messages import batch, connect, event
from tests.integration.ingest.pipelines import answering, pipeline
from tests.servers.asgi_client import Answer, AsgiClient
from tests.servers.asgi_socket import opened

pytestmark = pytest.mark.usefixtures("lake")


def send(client: AsgiClient, *events: dict[str, Any], path: str = "/lakehouse/cdc", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(path, {"events": list(events) or [event(1)]}, headers=named)


def test_events_are_stored_and_counted(lake: Warehouse, engine: AsgiClient) -> None:
    content = b'{"events": [ {"sequence":100,"timestamp":1,"operation":"DELETE","table":"users","rowId":"7"} ]}'
    answer = engine.call("POST", "/lakehouse/cdc", body=content)
    assert (answer.status, answer.json()) == (
        200,
        {"success": True, "eventsReceived": 1, "eventsAccepted": 1, "isDuplicate": False},
    )
    ((position, source, number, stored),) = logged(lake.id)
    assert (position, number) == (1, None)
    assert source.startswith("http-cdc-")
    assert stored == content[11:-1]
    assert IngestBatch.objects.get().principal == "oidc~engine"


@pytest.mark.parametrize("headers", [{}, {"idempotency_key": "k"}, {"x_client_id": "me"}])
def test_a_repeated_request_is_recognised(lake: Warehouse, engine: AsgiClient, headers: dict[str, str]) -> None:
    assert not send(engine, **headers).json()["isDuplicate"]
    again = send(engine, **headers).json()
    assert again == {"success": True, "eventsReceived": 1, "eventsAccepted": 0, "isDuplicate": True}
    assert len(logged(lake.id)) == 1


def test_other_events_clients_and_keys_are_other_requests(lake: Warehouse, engine: AsgiClient) -> None:
    sent = [
        send(engine, x_client_id="a"),
        send(engine, x_client_id="b"),
        send(engine, event(2), x_client_id="a"),
        send(engine, idempotency_key="1"),
        send(engine, idempotency_key="2"),
    ]
    assert [each.json()["isDuplicate"] for each in sent] == [False] * 5
    assert len(logged(lake.id)) == 5


def test_a_key_that_was_used_for_other_events_is_refused(engine: AsgiClient) -> None:
    send(engine, idempotency_key="k")
    assert send(engine, event(2), idempotency_key="k").error() == (422, "UnprocessableEntityException")
    assert send(engine, event(2), idempotency_key="x" * 256).error() == (400, "BadRequestException")


def test_what_a_caller_may_is_remembered_and_compared(lake: Warehouse, engine: AsgiClient, grant: Grant) -> None:
    """A right or a table that changes is felt by the next request, although the decision before is known."""
    create_table(engine, lake, "users")
    grant("writer", "modify")
    writer = engine.as_user("writer")
    assert [send(writer, event(number)).status for number in (1, 2)] == [200, 200]
    revoke(lake, "writer", "modify")
    assert send(writer, event(3)).status == 404
    grant("writer", "modify")
    assert send(writer, event(3)).status == 200
    assert engine.delete(f"/catalog/v1/{lake.id}/namespaces/default/tables/users").status == 204
    assert send(writer, event(4)).error()[0] in {403, 404}
    assert len(logged(lake.id)) == 3


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{}", "No events provided"),
        (b'{"events": []}', "No events provided"),
        (b'{"events": null}', "No events provided"),
        (b"", "The body is not valid"),
        (b"[1]", "The body is not valid"),
        (b'{"events": 1}', "The events are not valid: Expected `array`, got `int`"),
        (b'{"events": [{}]}', "events[0]: Object missing required field `sequence`"),
        (b'{"events": [\xff]}', "The body is not valid"),
        (
            b'{"events": [{"sequence":1,"timestamp":1,"operation":"INSERT","table":"t","rowId":"1","after":{"\xff":1}}]}',
            "The body is not valid: it is not UTF-8",
        ),
        (b'{"events": ' + b"[" * 100_000, "The body is not valid"),
    ],
)
def test_what_is_not_valid_is_refused_as_the_paper_says(engine: AsgiClient, body: bytes, told: str) -> None:
    answer = engine.call("POST", "/lakehouse/cdc", body=body)
    assert answer.status == 400
    assert answer.json()["error"].startswith(told)


def test_a_compressed_body_is_taken_and_one_that_becomes_too_large_is_not(lake: Warehouse, engine: AsgiClient) -> None:
    def packed(content: bytes) -> Answer:
        headers = {"content-encoding": "gzip"}
        return engine.call("POST", "/lakehouse/cdc", body=gzip.compress(content), headers=headers)

    assert packed(json.dumps({"events": [event(1)]}).encode()).status == 200
    bomb = b'{"events": [{"x": "' + b"y" * 5_000_000 + b'"}]}'
    assert packed(bomb).error() == (413, "PayloadTooLargeException")
    assert engine.call("POST", "/lakehouse/cdc", body=bomb).error() == (413, "PayloadTooLargeException")
    assert len(logged(lake.id)) == 1


def test_a_full_buffer_is_answered_as_the_paper_says_and_stores_nothing(
    lake: Warehouse, engine: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(monkeypatch, buffer_bytes=1)
    answer = send(engine)
    assert answer.status == 503
    assert answer.json()["error"].startswith("Buffer overflow: maximum capacity reached")
    assert answer.headers["retry-after"] == "5"
    limits(monkeypatch, buffer_bytes=1000)
    assert not send(engine).json()["isDuplicate"]
    assert len(logged(lake.id)) == 1


def test_rights_are_those_of_the_catalog(engine: AsgiClient, stranger: AsgiClient, client: AsgiClient) -> None:
    assert send(stranger).error() == (404, "NoSuchWarehouseException")
    hidden = send(stranger, path="/lakehouse/w/lake/cdc")
    missing = send(stranger, path="/lakehouse/w/gone/cdc")
    assert hidden.body.replace(b"lake", b"gone") == missing.body
    assert send(client).error() == (401, "NotAuthorizedException")
    assert send(engine, event(1, table="gone.t")).error() == (404, "NoSuchNamespaceException")


PATHS = [
    ("GET", "health"),
    ("GET", "status"),
    ("POST", "flush"),
    ("GET", "metrics"),
    ("GET", "analytics/status"),
    ("POST", "cdc"),
]


@pytest.mark.parametrize(("method", "what"), PATHS)
@pytest.mark.parametrize("base", ["/lakehouse", "/lakehouse/w/lake"])
def test_every_answer_says_what_is_left(engine: AsgiClient, method: str, what: str, base: str) -> None:
    body = {"events": [event(1)]} if what == "cdc" else None
    answer = engine.call(method, f"{base}/{what}", json=body)
    assert answer.status == 200
    assert answer.headers["x-ratelimit-limit"] == "100"
    assert 0 <= int(answer.headers["x-ratelimit-remaining"]) <= 100
    assert time.time() - 2 <= int(answer.headers["x-ratelimit-reset"]) <= time.time() + 5
    assert "x-request-id" in answer.headers


@pytest.mark.parametrize(("method", "what"), PATHS[1:])
def test_every_route_but_health_needs_a_token(client: AsgiClient, method: str, what: str) -> None:
    answer = client.call(method, f"/lakehouse/{what}")
    assert answer.status == 401
    assert answer.headers["x-ratelimit-limit"] == "100"
    assert client.get("/lakehouse/health").body == b"OK"


@pytest.mark.parametrize(("method", "what"), PATHS)
def test_other_methods_are_refused(engine: AsgiClient, method: str, what: str) -> None:
    assert engine.call("DELETE", f"/lakehouse/{what}").error() == (405, "MethodNotAllowedException")
    assert (engine.head(f"/lakehouse/{what}").status == 200) is (method == "GET")


def test_too_many_requests_are_refused_with_the_time_to_wait(
    engine: AsgiClient, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests._BUCKETS, "_rate", 0.1)
    monkeypatch.setattr(requests._BUCKETS, "_burst", 2)
    assert [engine.get("/lakehouse/status").status for _ in range(3)] == [200, 200, 429]
    refused = engine.get("/lakehouse/status")
    assert refused.error() == (429, "TooManyRequestsException")
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert engine.get("/lakehouse/w/LAKE/status").status == 429  # another spelling is no other bucket
    assert admin.get("/lakehouse/status").status == 200


def test_a_caller_cannot_fill_the_database_with_requests_that_are_recognised(
    lake: Warehouse, engine: AsgiClient, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(monkeypatch, max_requests_per_caller=2)
    answers = [send(engine, event(1), event(number), idempotency_key=f"{number}") for number in (1, 2, 3)]
    assert [each.status for each in answers] == [200, 200, 429]
    code, kind = answers[-1].error()
    assert (code, kind, answers[-1].headers["retry-after"]) == (429, "TooManyRequestsException", "3600")
    assert "of a caller" in answers[-1].json()["error"]["message"]
    assert send(engine, event(1), event(2), idempotency_key="2").json()["isDuplicate"]
    assert send(admin).status == 200
    assert len(logged(lake.id)) == 3


def test_status_shows_the_buffer_and_the_connected_sources(
    lake: Warehouse, engine: AsgiClient, admin: AsgiClient
) -> None:
    with opened() as socket:
        socket.ask(connect())
        socket.ask(batch(1, event(1), event(2)))
        socket.ask(batch(1, event(1), event(2)))
        own = engine.get("/lakehouse/status").json()
        others = admin.as_user("engine2").get("/lakehouse/status")
    assert others.status == 404
    (source,) = own["sourceStates"]
    assert {name: source[name] for name in source if not name.endswith("At")} == {
        "id": "abc123",
        "sourceShardName": "users-shard-1",
        "lastReceivedSequence": 1,
        "lastAckedSequence": 1,
        "batchesReceived": 1,
        "eventsReceived": 2,
    }
    assert abs(source["lastActivityAt"] / 1000 - time.time()) < 60
    assert (own["state"], own["connectedSources"]) == ("receiving", 1)
    assert own["dedupStats"] == {"totalChecks": 2, "duplicatesFound": 1, "entriesTracked": 1}
    assert (own["buffer"]["batchCount"], own["buffer"]["eventCount"]) == (1, 2)
    assert own["buffer"]["totalSizeBytes"] == IngestLogHead.objects.get().buffered_bytes
    assert own["buffer"]["oldestBatchTime"] == own["buffer"]["newestBatchTime"]
    after = engine.get("/lakehouse/status").json()
    assert (after["connectedSources"], after["sourceStates"]) == (0, [])


def test_metrics_have_the_six_series_of_the_paper_and_histograms(engine: AsgiClient) -> None:
    send(engine, event(1), event(2))
    send(engine, event(1), event(2))
    answer = engine.get("/lakehouse/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.body.decode().splitlines()
    values = dict(line.split(" ") for line in lines if not line.startswith("#") and "{" not in line)
    assert values["dolake_buffer_events"] == "2"
    assert values["dolake_connected_sources"] == "0"
    assert (values["dolake_dedup_checks"], values["dolake_dedup_duplicates"]) == ("2", "1")
    assert values["lakewarden_ingest_batch_events_count"] == "1"  # of this warehouse, not of the whole process
    assert int(values["dolake_buffer_bytes"]) > 0
    assert "dolake_buffer_utilization" in values
    assert "# TYPE lakewarden_ingest_append_seconds histogram" in lines
    assert float(values["lakewarden_ingest_append_seconds_count"]) >= 1
    assert float(values["lakewarden_ingest_batch_events_sum"]) >= 2


def test_analytics_count_what_was_received(engine: AsgiClient) -> None:
    send(engine, event(1), event(2))
    found = engine.get("/lakehouse/analytics/status").json()
    contents = config.current().ingest.contents
    assert (found["durabilityTier"], found["primaryStorage"], found["fallbackStorage"]) == ("P2", contents, "none")
    assert (found["batchesReceived"], found["eventsReceived"], found["eventsBuffered"]) == (1, 2, 2)


def test_analytics_show_what_the_pipeline_has_written(lake: Warehouse, engine: AsgiClient) -> None:
    send(engine)
    assert engine.get("/lakehouse/analytics/status").json()["r2Writes"] == 0
    pipeline(lake)
    IngestPipeline.objects.update(freshness={"dataFiles": 3, "rejectedValues": 2})
    found = engine.get("/lakehouse/analytics/status").json()
    assert (found["r2Writes"], found["errors"]) == (3, 2)


def test_a_flush_waits_for_what_the_pipeline_did(lake: Warehouse, engine: AsgiClient) -> None:
    send(engine)
    pipeline(lake)
    with answering(batchesFlushed=1, eventsFlushed=1, bytesWritten=5, paths=["a"]):
        found = engine.post("/lakehouse/flush").json()
    assert found["success"]
    assert (found["batchesFlushed"], found["eventsFlushed"], found["bytesWritten"]) == (1, 1, 5)
    assert (found["paths"], found["usedFallback"]) == (["a"], False)
    asked = IngestFlushRequest.objects.get()
    assert (asked.upto_position, asked.requested_by) == (1, "oidc~engine")


def test_a_flush_that_takes_too_long_says_so(
    lake: Warehouse, engine: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(engine)
    pipeline(lake, state="flushing")
    limits(monkeypatch, flush_timeout_s=0.2)
    found = engine.post("/lakehouse/flush").json()
    assert (found["success"], found["error"]) == (False, "The pipeline has not answered for 0.2 s; it goes on")
    assert engine.get("/lakehouse/status").json()["state"] == "flushing"


@pytest.mark.parametrize("state", ["flushing", "recovering", "error"])
def test_the_state_is_what_a_pipeline_that_works_says(lake: Warehouse, engine: AsgiClient, state: str) -> None:
    send(engine)
    pipeline(lake, state=state)
    assert engine.get("/lakehouse/status").json()["state"] == state


def test_a_flush_of_what_is_flushed_is_done_at_once(lake: Warehouse, engine: AsgiClient) -> None:
    assert engine.post("/lakehouse/flush").json()["success"]
    send(engine)
    run(log.mark_flushed(lake.id, upto=1))
    assert engine.post("/lakehouse/flush").json()["success"]
    assert not IngestFlushRequest.objects.exists()


def test_a_pipeline_that_is_silent_is_not_running(
    lake: Warehouse, engine: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(engine)
    pipeline(lake)
    limits(monkeypatch, pipeline_silence_s=0)
    found = engine.post("/lakehouse/flush").json()
    assert not found["success"]
    assert "lakewarden pipeline" in found["error"]


def test_settings_are_announced_as_they_are() -> None:
    settings = config.current().ingest
    assert (settings.max_message_bytes, settings.max_event_bytes, settings.buffer_bytes) == (2**22, 2**20, 2**27)


def test_a_warehouse_is_not_deleted_with_events_that_are_in_no_table(
    lake: Warehouse, engine: AsgiClient, admin: AsgiClient
) -> None:
    send(engine, event(1), event(2))
    assert engine.delete(f"/catalog/v1/{lake.id}/namespaces/default").status == 204
    refused = admin.delete(f"/management/v1/warehouse/{lake.id}")
    assert refused.error() == (409, "WarehouseNotEmptyException")
    assert "has 2 events of change data in 1 batches that are not in tables yet" in refused.json()["error"]["message"]
    run(log.mark_flushed(lake.id, upto=1))
    assert admin.delete(f"/management/v1/warehouse/{lake.id}").status == 204


def test_a_warehouse_with_events_is_deleted_by_force(lake: Warehouse, engine: AsgiClient, admin: AsgiClient) -> None:
    send(engine)
    assert engine.delete(f"/catalog/v1/{lake.id}/namespaces/default").status == 204
    assert admin.delete(f"/management/v1/warehouse/{lake.id}?force=true").status == 204
    assert not IngestLogHead.objects.exists()
