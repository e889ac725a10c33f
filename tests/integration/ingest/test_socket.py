"""The protocol of the socket, message by message: what a client sends, and what it is answered."""

import json
from typing import Any

import pytest

from ingest.api import sockets
from ingest.models import IngestBatch, IngestConnection, IngestSource
from lakewarden import config
from lakewarden.http.sockets import STOPPING
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.ingest.batches import logged
from tests.integration.ingest.changed import create_table, limits, revoke
from tests.integration.ingest.messages import batch, connect, event
from tests.servers.asgi_client import AsgiClient
from tests.servers.asgi_socket import Refused, opened

pytestmark = pytest.mark.usefixtures("lake")


def refusal(caller: str | None = "engine", path: str = "/lakehouse/ws", **options: Any) -> Refused:
    with pytest.raises(Refused) as refused, opened(caller, path, **options):
        pass
    return refused.value


def test_connect_is_answered_with_the_state_and_where_to_go_on() -> None:
    with opened() as socket:
        answer = socket.ask(connect(lastAckSequence=42))
    assert answer["type"] == "status"
    assert answer["state"] == "idle"
    assert answer["buffer"] == {"batchCount": 0, "eventCount": 0, "totalSizeBytes": 0, "utilization": 0.0}
    assert answer["connectedSources"] == 1
    assert (answer["lastAckedSequence"], answer["sourceDoId"], answer["protocolVersion"]) == (42, "abc123", 1)
    assert answer["capabilities"] == {
        "binaryProtocol": False,
        "compression": False,
        "batching": True,
        "maxBatchSize": 1000,
        "maxMessageSize": 4194304,
        "maxEventSize": 1048576,
        "maxUnacknowledgedBatches": 16,
    }


def test_a_batch_is_acknowledged_and_stored_byte_for_byte(lake: Warehouse) -> None:
    events = '[ {"sequence":9007199254740993,"timestamp":1.5,"operation":"UPDATE","table":"users","rowId":"ż\\u00e9",\n\
        "before":null,"after":{"n":12345678901234567890,"x":1.10,"y":1e400,"z":{"a":1,"a":2}},"metadata":{},"q":1}]'
    message = json.dumps(batch(43, event(1))).replace(json.dumps([event(1)]), events)
    with opened() as socket:
        socket.ask(connect(lastAckSequence=42))
        answer = socket.ask(message)
    assert {name: answer[name] for name in ("type", "correlationId", "sequenceNumber", "status")} == {
        "type": "ack",
        "correlationId": "req-43",
        "sequenceNumber": 43,
        "status": "ok",
    }
    assert answer["details"]["eventsProcessed"] == 1
    assert 0 < answer["details"]["bufferUtilization"] < 0.01 or answer["details"]["bufferUtilization"] == 0.0
    assert 0 < answer["details"]["timeUntilFlush"] <= 60_000
    assert logged(lake.id) == [(1, "abc123", 43, events.encode())]
    stored = IngestBatch.objects.get()
    assert (stored.principal, stored.events, stored.bytes) == ("oidc~engine", 1, len(events.encode()))
    assert stored.tables == [{"table": "users", "namespace": ["default"], "name": "users", "id": None}]


def test_an_existing_table_is_named_with_its_id(lake: Warehouse, engine: AsgiClient) -> None:
    identifier = create_table(engine, lake, "Users")
    with opened() as socket:
        answer = socket.ask(batch(1, event(1, table="USERS"), event(2, table="default.users"), event(3, table="new")))
    assert answer["status"] == "ok"
    assert IngestBatch.objects.get().tables == [
        {"table": "USERS", "namespace": ["default"], "name": "Users", "id": identifier},
        {"table": "default.users", "namespace": ["default"], "name": "Users", "id": identifier},
        {"table": "new", "namespace": ["default"], "name": "new", "id": None},
    ]


def test_batches_that_are_sent_without_waiting_are_acknowledged_in_order(lake: Warehouse) -> None:
    with opened() as socket:
        for number in range(1, 41):
            socket.send(batch(number))
        answers = [socket.receive() for _ in range(40)]
    assert [(each["sequenceNumber"], each["status"]) for each in answers] == [(number, "ok") for number in range(1, 41)]
    assert [row[:3] for row in logged(lake.id)] == [(number, "abc123", number) for number in range(1, 41)]


def test_a_batch_that_is_sent_again_is_a_duplicate_also_on_another_connection(lake: Warehouse) -> None:
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
        again = socket.ask(batch(1, isRetry=True))
    with opened() as other:
        assert other.ask(connect(lastAckSequence=0))["lastAckedSequence"] == 1
        later = other.ask(batch(1))
        assert other.ask(batch(2))["status"] == "ok"
    assert (again["status"], again["details"]["eventsProcessed"], later["status"]) == ("duplicate", 0, "duplicate")
    assert len(logged(lake.id)) == 2


@pytest.mark.parametrize(
    ("number", "events", "told"),
    [
        (3, [event(3)], "sequenceNumber 3 was received, 2 is expected"),
        (1, [event(9)], "sequenceNumber 1 was received before with other events, 2 is expected"),
    ],
)
def test_a_gap_or_other_events_of_a_number_are_refused(number: int, events: list[dict[str, Any]], told: str) -> None:
    with opened() as socket:
        socket.ask(batch(1))
        answer = socket.ask(batch(number, *events))
        assert socket.ask(batch(2))["status"] == "ok"
    assert answer["type"] == "nack"
    assert answer["correlationId"] == f"req-{number}"
    assert (answer["reason"], answer["shouldRetry"], answer["sequenceNumber"]) == ("invalid_sequence", False, number)
    assert answer["errorMessage"] == told
    assert "retryDelayMs" not in answer


WRONG: list[tuple[Any, str]] = [
    ("{", "The message is not valid"),
    ("[]", "The message is not valid"),
    ('"text"', "The message is not valid"),
    ({"type": "other"}, "The message is not valid: Invalid value 'other'"),
    (batch(1) | {"events": []}, "No events provided"),
    (batch(1) | {"events": {}}, "The events are not valid: Expected `array`, got `object`"),
    (batch(1) | {"sequenceNumber": 1.0}, "Expected `int`, got `float` - at `$.sequenceNumber`"),
    (batch(1) | {"sequenceNumber": 2**63}, "at `$.sequenceNumber`"),
    (batch(1) | {"sourceDoId": ""}, "at `$.sourceDoId`"),
    (batch(1) | {"sourceDoId": "a\0b"}, "at `$.sourceDoId`"),
    (
        batch(1, event(1), event(2, table=5), event("3")),
        "events[1].table: Expected `str`, got `int`; events[2].sequence",
    ),
    (batch(1, event(2**63)), "events[0].sequence: Expected `int` <= 9223372036854775807"),
    (batch(1, event(1) | {"operation": "insert"}), "events[0].operation: Invalid enum value 'insert'"),
    (batch(1, {"sequence": 1}), "events[0]: Object missing required field `timestamp`"),
    (batch(1, event(1, after=[])), "events[0].after: Expected `object | null`, got `array`"),
    (batch(1, event(1, rowId=7)), "events[0].rowId: Expected `str`, got `int`"),
    (batch(1, event(1, table="")), "events[0].table: Expected `str` of length >= 1"),
    (batch(1, *[event(number) for number in range(1001)]), "The batch has 1001 events, at most 1000 are allowed"),
    (batch(1, *[event(1, table=f"t{number}") for number in range(101)]), "name 101 tables, at most 100"),
    (batch(1, event(1, table="a.")), "Invalid table name: it is empty"),
    (batch(1, event(1, table="\0")), "contains a control character"),
    (batch(1, event(1, table="users__rejected")), "names that end with __rejected are the pipeline's own"),
    (batch(1, event(1, table="elsewhere.users")), "Namespace does not exist: elsewhere"),
    (batch(1, event(1, after={"x": "y" * 1048576})), "events[0]: it has 1048"),
    (json.dumps(batch(1)).replace('"John Doe"', "NaN"), "The message is not valid: JSON is malformed"),
    (json.dumps(batch(1)).replace('"John Doe"', "[" * 100_000 + "]" * 100_000), "maximum recursion depth"),
    (connect() | {"protocolVersion": 2}, "protocolVersion 2 is not supported; it must be 1"),
]


@pytest.mark.parametrize(("message", "told"), WRONG, ids=[told[:40] for _, told in WRONG])
def test_what_is_not_valid_is_refused_by_name_and_the_socket_stays_open(
    message: Any, told: str, lake: Warehouse
) -> None:
    with opened() as socket:
        answer = socket.ask(message)
        assert socket.ask(batch(1))["status"] == "ok"
    assert (answer["type"], answer["reason"], answer["shouldRetry"]) == ("nack", "invalid_format", False)
    assert told in answer["errorMessage"]
    assert len(logged(lake.id)) == 1


def test_binary_messages_are_refused() -> None:
    with opened() as socket:
        socket.send_bytes(b"\x00\x01")
        answer = socket.receive()
    assert (answer["reason"], answer["errorMessage"]) == (
        "invalid_format",
        "Binary messages are not supported: send JSON as text",
    )


def test_many_messages_in_a_row_that_are_not_valid_end_the_connection() -> None:
    with opened() as socket:
        for _ in range(20):
            socket.send("{")
        assert {socket.receive()["reason"] for _ in range(20)} == {"invalid_format"}
        assert socket.closed() == (1008, "20 messages in a row were not valid")


def test_heartbeats_are_answered() -> None:
    with opened() as socket:
        answer = socket.ask({"type": "heartbeat", "timestamp": 1, "sourceDoId": "abc123", "pendingEvents": 0})
    assert answer["type"] == "pong"
    assert abs(answer["serverTime"] - answer["timestamp"]) < 1000


def test_a_flush_without_a_pipeline_says_so_and_loses_nothing(lake: Warehouse) -> None:
    with opened() as socket:
        nothing = socket.ask({"type": "flush_request", "correlationId": "flush-0", "reason": "manual"})
        socket.ask(batch(1))
        answer = socket.ask({"type": "flush_request", "correlationId": "flush-1", "reason": "manual"})
    assert nothing["result"]["success"]
    assert (answer["type"], answer["correlationId"]) == ("flush_response", "flush-1")
    assert not answer["result"]["success"]
    assert "lakewarden pipeline" in answer["result"]["error"]
    assert len(logged(lake.id)) == 1


def test_a_second_source_on_a_connection_is_refused() -> None:
    with opened() as socket:
        socket.ask(connect("one"))
        for message in (connect("two"), batch(1, sourceDoId="two")):
            answer = socket.ask(message)
            assert "is not the one of this connection, 'one'" in answer["errorMessage"]


def test_too_many_messages_at_once_are_refused_with_a_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, messages_per_s=1, burst=5)
    with opened() as socket:
        for number in range(1, 21):
            socket.send(batch(number))
        answers = [socket.receive() for _ in range(20)]
    late = [each for each in answers if each["type"] == "nack"]
    assert late
    assert {each["reason"] for each in late} == {"rate_limited"}
    assert all(each["shouldRetry"] and 1000 <= each["retryDelayMs"] <= 64_000 for each in late)
    first = late[0]["sequenceNumber"]
    assert [each["sequenceNumber"] for each in answers if each["type"] == "ack"] == list(range(1, first))


@pytest.mark.parametrize("token", [None, "expired"])
def test_nobody_connects_without_a_valid_token(token: str | None) -> None:
    refused = refusal(token)
    assert (refused.status, json.loads(refused.body)["error"]["type"]) == (401, "NotAuthorizedException")


def test_a_token_in_the_query_is_ignored() -> None:
    assert refusal(None, "/lakehouse/ws?token=engine&access_token=engine").status == 401


def test_browsers_offer_their_token_as_a_subprotocol() -> None:
    with opened(None, subprotocols=["bearer", "engine"]) as socket:
        assert socket.subprotocol == "bearer"
        assert socket.ask(batch(1))["status"] == "ok"


@pytest.mark.parametrize("path", ["/lakehouse/w/lake/ws", "/lakehouse/w/LAKE/ws"])
def test_a_warehouse_may_be_named(path: str, lake: Warehouse) -> None:
    with opened(path=path) as socket:
        assert socket.ask(batch(1))["status"] == "ok"
    assert len(logged(lake.id)) == 1


def test_a_hidden_warehouse_is_answered_like_a_missing_one() -> None:
    hidden, missing = (refusal("stranger", f"/lakehouse/w/{name}/ws") for name in ("lake", "gone"))
    assert (hidden.status, missing.status) == (404, 404)
    assert hidden.body.replace(b"lake", b"gone") == missing.body


def test_rights_are_those_of_the_catalog(lake: Warehouse, engine: AsgiClient, grant: Grant) -> None:
    """A reader sees the table and may not write it; who sees nothing is answered as if there were nothing."""
    create_table(engine, lake, "users")
    grant("reader", "select")
    with opened("reader") as socket:
        assert "Not allowed: write_data on this table" in socket.ask(batch(1))["errorMessage"]
        missing = socket.ask(batch(1, event(1, table="gone")))
        assert "Not allowed: create_table on this namespace" in missing["errorMessage"]


def test_a_revoked_right_is_felt_by_the_next_batch_of_an_open_socket(
    lake: Warehouse, engine: AsgiClient, grant: Grant
) -> None:
    create_table(engine, lake, "users")
    grant("writer", "modify")
    with opened("writer") as socket:
        assert socket.ask(batch(1))["status"] == "ok"
        revoke(lake, "writer", "modify")
        answer = socket.ask(batch(2))
        assert (answer["type"], answer["reason"]) == ("nack", "invalid_format")
        grant("writer", "modify")
        assert socket.ask(batch(2))["status"] == "ok"
    assert [row[2] for row in logged(lake.id)] == [1, 2]


def test_a_table_that_is_dropped_or_made_meanwhile_is_found_anew(lake: Warehouse, engine: AsgiClient) -> None:
    with opened() as socket:
        socket.ask(batch(1))
        identifier = create_table(engine, lake, "users")
        socket.ask(batch(2))
        assert engine.delete(f"/catalog/v1/{lake.id}/namespaces/default/tables/users").status == 204
        socket.ask(batch(3))
    found = IngestBatch.objects.order_by("position").values_list("tables", flat=True)
    assert [each[0]["id"] for each in found] == [None, identifier, None]


def test_a_full_buffer_is_refused_and_what_was_sent_after_it_can_be_sent_again(
    lake: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(monkeypatch, buffer_bytes=1024)
    big = [event(1, after={"x": "y" * 400})]
    with opened() as socket:
        assert socket.ask(batch(1, *big))["status"] == "ok"
        for number in (2, 3):
            socket.send(batch(number, *big))
        answers = [socket.receive() for _ in range(2)]
        assert [each["reason"] for each in answers] == ["buffer_full", "buffer_full"]
        assert all(each["shouldRetry"] for each in answers)
        limits(monkeypatch, buffer_bytes=1900)
    with opened() as socket:
        assert [socket.ask(batch(number, *big))["status"] for number in (2, 3)] == ["ok", "buffered"]
    assert [row[2] for row in logged(lake.id)] == [1, 2, 3]


def test_a_stopping_server_answers_what_it_has_read_and_refuses_the_rest(lake: Warehouse) -> None:
    with opened() as socket:
        socket.send(batch(1))
        socket.put({"type": STOPPING})
        socket.send(batch(2))
        assert socket.receive()["status"] == "ok"
        answer = socket.receive()
        assert (answer["reason"], answer["shouldRetry"], answer["sequenceNumber"]) == ("shutting_down", True, 2)
        assert socket.closed() == (1012, "This server is stopping: connect again")
    assert [row[2] for row in logged(lake.id)] == [1]


def test_a_client_that_does_not_read_its_answers_is_not_read_any_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window bounds what it costs; then the connection is closed."""
    whole = config.current()
    server = whole.server.model_copy(update={"write_timeout_s": 0.5})
    altered = whole.model_copy(update={"server": server})
    monkeypatch.setattr(config, "current", lambda: altered)
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
        socket.stop_reading()
        for number in range(2, 50):
            socket.send(batch(number))
        socket._task.result(20)
        assert 48 - socket.waiting() <= 16 + 2


def test_more_sockets_than_an_address_may_have_are_refused(lake: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_settings", config.current().ingest.model_copy(update={"connections_per_address": 2}))
    with opened(), opened(address="10.0.0.9"), opened():
        refused = refusal()
        assert refused.status == 429
        assert int(refused.headers["retry-after"]) >= 1
    with opened():
        pass
    assert not IngestConnection.objects.exists()


def test_more_new_sockets_a_second_than_allowed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets._OPENINGS, "_rate", 0.1)
    monkeypatch.setattr(sockets._OPENINGS, "_burst", 2)
    with opened(), opened():
        refused = refusal()
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")


def test_more_sockets_than_a_source_may_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, connections_per_source=1)
    with opened() as first, opened() as second, opened("admin") as other:
        assert first.ask(connect())["type"] == "status"
        answer = second.ask(connect())
        assert (answer["reason"], answer["errorMessage"]) == (
            "rate_limited",
            "The source 'abc123' has 1 connections, at most 1 are allowed",
        )
        assert other.ask(connect())["type"] == "status"  # it is another caller's, who knows nothing of the first
    assert IngestSource.objects.count() == 2


def test_other_paths_are_not_sockets() -> None:
    for path in ("/catalog/v1/config", "/lakehouse/cdc", "/lakehouse/v1/ws"):
        assert refusal(path=path).status == 403


def test_a_new_source_begins_with_its_first_batch_although_others_follow_at_once(lake: Warehouse) -> None:
    for source in range(5):
        with opened() as socket:
            for number in range(7, 11):
                socket.send(batch(number, sourceDoId=f"s{source}"))
            answers = [socket.receive() for _ in range(4)]
        assert [each.get("status") for each in answers] == ["ok"] * 4
