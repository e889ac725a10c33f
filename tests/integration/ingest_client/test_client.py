"""The client against a gateway that follows the paper: order, retries, lost connections, refusals."""

import time
from typing import Any

import pytest

from ingest.client import ChangeEvent, FixedToken, IngestClient
from ingest.client.errors import NotResumable, Refused
from ingest.client.messages import Ack
from ingest.client.retries import Backoff
from lakewarden.errors import Forbidden, InvalidArgument, NotAuthorized, NotFound, RequestTimedOut, Unavailable
from tests.integration.ingest_client.clients import Connected
from tests.servers import paper_gateway
from tests.servers.paper_gateway import PaperGateway, acked_as, lost, lost_after_storing, nacked


def events(first: int, count: int = 2) -> list[ChangeEvent]:
    return [
        ChangeEvent(sequence=each, timestamp=1, operation="INSERT", table="users", row_id=str(each), after={"id": each})
        for each in range(first, first + count)
    ]


def sequences(gateway: PaperGateway, source: str = "orders-1") -> list[int]:
    return [each["sequence"] for each in gateway.events(source)]


def test_batches_arrive_in_order_with_every_member_of_the_paper(gateway: PaperGateway, client_of: Connected) -> None:
    with client_of(shard="shard-7", warehouse="sales") as client:
        assert [client.send(events(1)), client.send(events(3, 3))] == [1, 2]
    first, second = gateway.log["orders-1"]
    assert gateway.paths == ["/lakehouse/w/sales/ws"]
    assert {name: first[name] for name in ("type", "sourceDoId", "sourceShardName", "sequenceNumber")} == {
        "type": "cdc_batch",
        "sourceDoId": "orders-1",
        "sourceShardName": "shard-7",
        "sequenceNumber": 1,
    }
    assert (second["firstEventSequence"], second["lastEventSequence"], second["sequenceNumber"]) == (3, 5, 2)
    assert (first["isRetry"], first["retryCount"]) == (False, 0)
    assert first["events"][0] == {
        "sequence": 1,
        "timestamp": 1,
        "operation": "INSERT",
        "table": "users",
        "rowId": "1",
        "after": {"id": 1},
    }
    assert gateway.connects[0]["protocolVersion"] == 1
    assert gateway.connects[0]["capabilities"]["maxBatchSize"] == 1000


def test_a_client_goes_on_behind_what_the_gateway_has(gateway: PaperGateway, client_of: Connected) -> None:
    with client_of() as client:
        client.send(events(1))
    with client_of() as client:
        assert client.connect() == 1
        assert client.send(events(3)) == 2
    assert sequences(gateway) == [1, 2, 3, 4]


@pytest.mark.parametrize("fault", [lost, lost_after_storing], ids=["before storing", "after storing"])
@pytest.mark.parametrize("at", [0, 3, 9])
def test_a_lost_connection_costs_and_doubles_nothing(
    gateway: PaperGateway, client_of: Connected, acks: list[Ack], fault: paper_gateway.Fault, at: int
) -> None:
    gateway.faults += [acked_as("ok")] * at + [fault]
    with client_of(window=4) as client:
        for number in range(10):
            client.send(events(2 * number))
    assert sequences(gateway) == list(range(20))
    assert [each.sequence_number for each in acks] == list(range(1, 11))
    assert len(gateway.connects) == 2
    # the last acks may have been lost with the connection
    assert gateway.connects[1]["lastAckSequence"] <= at


def test_a_full_buffer_is_waited_for_and_later_batches_follow_in_order(
    gateway: PaperGateway, client_of: Connected, acks: list[Ack]
) -> None:
    gateway.faults += [acked_as("ok"), nacked("buffer_full", retry_after_ms=150)]
    began = time.monotonic()
    with client_of(window=4) as client:
        for number in range(8):
            client.send(events(2 * number))
    assert time.monotonic() - began >= 0.15
    assert sequences(gateway) == list(range(16))
    assert len(acks) == 8
    second = [each for each in gateway.batches if each["sequenceNumber"] == 2]
    assert [(each["isRetry"], each["retryCount"]) for each in second] == [(False, 0), (True, 1)]


def test_a_server_that_shuts_down_is_tried_again(gateway: PaperGateway, client_of: Connected) -> None:
    gateway.faults += [nacked("shutting_down", retry_after_ms=10), lost]
    with client_of() as client:
        client.send(events(1))
        client.send(events(3))
    assert sequences(gateway) == [1, 2, 3, 4]


def test_every_status_of_an_ack_counts_as_durable(gateway: PaperGateway, client_of: Connected, acks: list[Ack]) -> None:
    statuses = ["ok", "buffered", "persisted", "duplicate", "fallback"]
    gateway.faults += [acked_as(each) for each in statuses]
    with client_of() as client:
        for number in range(5):
            client.send(events(2 * number))
    assert [each.status for each in acks] == statuses


def test_a_buffer_that_is_nearly_full_gets_one_batch_at_a_time(gateway: PaperGateway, client_of: Connected) -> None:
    gateway.faults += [acked_as("buffered")] * 6
    with client_of(window=8) as client:
        client.send(events(0))
        client.wait()
        for number in range(1, 6):
            client.send(events(2 * number))
            assert client.unacknowledged <= 1


def test_batches_in_the_fallback_file_of_another_replica_are_waited_for(
    gateway: PaperGateway, client_of: Connected
) -> None:
    """The replica that kept batch 1 in its file is gone; the other one expects 1 until that file is replayed."""
    gateway.faults += [lambda _gateway, _batch: {"type": "ack", "sequenceNumber": 1, "status": "fallback"}]
    with client_of() as client:
        client.send(events(1))
        client.wait()
        client.send(events(3))
        deadline = time.monotonic() + 20
        while len(gateway.batches) < 3 and time.monotonic() < deadline:
            client.poll()
        gateway.store(gateway.batches[0])
    assert sequences(gateway) == [1, 2, 3, 4]


def test_a_wrong_batch_is_an_error_that_says_why(gateway: PaperGateway, client_of: Connected) -> None:
    gateway.faults += [nacked("invalid_format", text="events[1].rowId is missing")]
    client = client_of()
    client.send(events(1))
    with pytest.raises(Refused, match=r"batch 1 \(invalid_format\): events\[1\].rowId is missing") as caught:
        client.wait()
    assert caught.value.reason == "invalid_format"


def test_a_refusal_of_no_batch_slows_down_or_ends(gateway: PaperGateway, client_of: Connected) -> None:
    def of_none(reason: str, *, retry: bool) -> paper_gateway.Fault:
        answer = {"type": "nack", "sequenceNumber": None, "reason": reason, "shouldRetry": retry, "retryDelayMs": 10}
        return lambda gateway, batch: gateway.store(batch) or answer  # type: ignore[func-returns-value]

    gateway.faults += [of_none("rate_limited", retry=True), of_none("invalid_format", retry=False)]
    client = client_of()
    client.send(events(1))
    client.poll()
    client.send(events(3))
    with pytest.raises(Refused, match="the gateway refused a message"):
        client.wait()


def test_a_sequence_that_the_gateway_does_not_expect_is_an_error(gateway: PaperGateway, client_of: Connected) -> None:
    client = client_of()
    client.send(events(1))
    client.wait()
    gateway.log.clear()
    client.send(events(3))
    with pytest.raises(Refused, match="expected 1"):
        client.wait()


def test_a_second_sender_with_the_same_source_is_noticed(gateway: PaperGateway, client_of: Connected) -> None:
    client = client_of()
    client.send(events(1))
    client.wait()
    for number in (2, 3):
        gateway.store({"sourceDoId": "orders-1", "sequenceNumber": number, "events": []})
    gateway.faults += [lost]
    client.close()
    with pytest.raises(NotResumable, match="something else sends with the same source"):
        client.connect()


class Rotating:
    """Its first token has expired; each refusal brings the next one."""

    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)

    def token(self) -> str:
        return self._tokens[0]

    def forget(self) -> bool:
        self._tokens = self._tokens[1:] or self._tokens
        return True


def test_an_expired_token_is_replaced(gateway: PaperGateway, client_of: Connected) -> None:
    with client_of(token=Rotating("expired", paper_gateway.TOKEN)) as client:
        client.send(events(1))
    assert sequences(gateway) == [1, 2]


def test_credentials_that_are_wrong_are_reported_after_the_second_try(
    gateway: PaperGateway, client_of: Connected
) -> None:
    with pytest.raises(NotAuthorized, match="The token is not valid"):
        client_of(token=Rotating("wrong", "wrong, too")).connect()
    assert len(gateway.paths) == 2
    with pytest.raises(NotAuthorized):
        client_of(token=FixedToken("wrong")).connect()


@pytest.mark.parametrize(("status", "kind"), [(403, Forbidden), (404, NotFound), (400, InvalidArgument)])
def test_refusals_that_no_retry_mends_are_reported_at_once(
    gateway: PaperGateway, client_of: Connected, status: int, kind: type[Exception]
) -> None:
    gateway.refusals.append((status, "the sentence of the server"))
    with pytest.raises(kind, match="the sentence of the server"):
        client_of().connect()
    assert len(gateway.paths) == 1


def test_a_server_that_is_busy_is_tried_again(gateway: PaperGateway, client_of: Connected) -> None:
    gateway.refusals += [(503, "starting"), (429, "slow down")]
    with client_of() as client:
        client.send(events(1))
    assert sequences(gateway) == [1, 2]


def test_it_gives_up_with_the_last_reason(gateway: PaperGateway, client_of: Connected) -> None:
    gateway.refusals += [(503, "not yet")] * 1000
    with pytest.raises(Unavailable, match=r"Nothing was acknowledged for .* 503: not yet"):
        client_of(backoff=Backoff(first_s=0.01, longest_s=0.02, give_up_s=0.3)).connect()


def test_the_window_bounds_what_is_under_way(gateway: PaperGateway, client_of: Connected) -> None:
    gateway.answer_delay_s = 0.01
    with client_of(window=3) as client:
        for number in range(12):
            client.send(events(2 * number))
            assert client.unacknowledged <= 3


def test_waiting_ends_in_time(gateway: PaperGateway, client_of: Connected) -> None:
    client = client_of()
    client.connect()
    gateway.is_silent = True
    client.send(events(1))
    with pytest.raises(RequestTimedOut, match="1 batches were not acknowledged"):
        client.wait(timeout_s=0.2)


def test_a_flush_answers_with_what_it_wrote(gateway: PaperGateway, client_of: Connected) -> None:
    with client_of() as client:
        client.send(events(1))
        result = client.flush()
    assert (result.success, result.events_flushed, result.paths) == (True, 2, ("a", "b"))


def test_limits_of_the_gateway_are_taken_over(gateway: PaperGateway, client_of: Connected) -> None:
    gateway.status_details["capabilities"] = {"maxBatchSize": 10, "maxMessageSize": 65536}
    client = client_of()
    client.connect()
    assert (client.limits.max_batch_size, client.limits.max_message_size) == (10, 65536)


def test_numbers_arrive_digit_by_digit(gateway: PaperGateway, client_of: Connected) -> None:
    wide: dict[str, Any] = {"id": 2**63 - 1, "text": "ü"}
    with client_of() as client:
        client.send(
            [ChangeEvent(sequence=2**60 + 1, timestamp=1, operation="INSERT", table="t", row_id="1", after=wide)]
        )
        raw = b'{"sequence":1,"price":1.10000000000000000001}'
        client.send_encoded([raw], span=(2**60 + 2, 2**60 + 2))
    assert gateway.events("orders-1")[0]["after"] == wide
    assert gateway.log["orders-1"][0]["firstEventSequence"] == 2**60 + 1
    assert gateway.batches[1]["sizeBytes"] == len(raw)


@pytest.mark.parametrize("source", ["", "with\nnewline", "späti"])
def test_a_source_that_does_not_fit_a_header_is_refused(source: str) -> None:
    with pytest.raises(InvalidArgument, match="source"):
        IngestClient("http://localhost/lakehouse", source=source, token=FixedToken("x"))


@pytest.mark.parametrize("address", ["localhost:8181", "ftp://host/lakehouse", "http://"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidArgument, match="must look like"):
        IngestClient(address, source="s", token=FixedToken("x"))


def test_no_gateway_at_all(client_of: Connected, gateway: PaperGateway) -> None:
    client = IngestClient(
        "http://127.0.0.1:1/lakehouse",
        source="s",
        token=FixedToken("x"),
        backoff=Backoff(first_s=0.01, longest_s=0.02, give_up_s=0.1),
    )
    with pytest.raises(Unavailable, match="does not answer"):
        client.connect()
