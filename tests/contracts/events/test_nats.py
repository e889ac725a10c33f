"""Events in a real stream of JetStream, read by an independent consumer: none lost, in order, faults named."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from nats.js.api import DiscardPolicy, StorageType, StreamConfig
from pydantic import SecretStr, ValidationError

from lakewarden.config import NatsSinkConfig
from lakewarden.events.leases import LeaseLost
from lakewarden.events.sinks.interface import Message, SinkFailed
from lakewarden.events.sinks.nats import NatsSink
from tests.contracts.events.brokers import consumed_from_stream, with_stream
from tests.contracts.events.faults import Workers, frozen, running, storm
from tests.servers import nats as nats_server
from tests.servers.certificates import Certificates
from tests.servers.nats import NatsServer

PASSWORD = "lake-secret"
USERS = f'authorization {{ users: [ {{ user: "lake", password: "{PASSWORD}" }} ] }}'
READER = 'authorization { users: [ { user: lake, password: pw, permissions: { publish: ["$JS.API.>"] } } ] }'


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    with nats_server.start() as running_server:
        yield running_server


@pytest.fixture
def make(server: NatsServer) -> Callable[..., str]:
    """Makes a stream for the subjects below its name, and returns the name."""

    def made(**settings: Any) -> str:
        name = f"events-{uuid4()}"
        chosen = StreamConfig(name=name, subjects=[f"{name}.>"], **settings)
        with_stream(server.url, lambda stream: stream.add_stream(chosen))
        return name

    return made


def held() -> None:
    pass


def sink(server: NatsServer, name: str, ensure_mine: Callable[[], None] = held, /, **settings: Any) -> NatsSink:
    chosen = {"servers": server.url, "stream": name, "subject": name, "timeout_s": 5, **settings}
    return NatsSink(NatsSinkConfig.model_validate(chosen), ensure_mine)


def message(number: int, *, key: str = "t", size: int = 0) -> Message:
    body = json.dumps({"data": {"version": number}, "filler": os.urandom(size // 2).hex()}).encode()
    return Message(number, uuid4(), "updateTable", key, body)


def numbers(server: NatsServer, stream: str) -> list[int]:
    return [each["data"]["version"] for each in consumed_from_stream(server.url, stream)]


def test_messages_are_in_the_stream_once_when_they_are_delivered(server: NatsServer, make: Callable[..., str]) -> None:
    stream = make()
    messages = [message(number, key=f"t{number % 4}") for number in range(600)]
    with closing(sink(server, stream)) as one:
        assert one.deliver(messages) == []
        assert one.deliver(messages[-10:]) == []  # as after a failure: the stream knows them
    events = consumed_from_stream(server.url, stream)
    assert [each["data"]["version"] for each in events] == sorted(range(600), key=lambda each: each)
    assert {each["subject of the message"] for each in events} == {f"{stream}.updateTable"}


def test_a_message_that_the_stream_or_the_server_does_not_take_is_refused_alone(
    server: NatsServer, make: Callable[..., str]
) -> None:
    stream = make(max_msg_size=100_000)
    batch = [message(1), message(2, size=200_000), message(3, size=2_000_000), message(4)]
    with closing(sink(server, stream)) as one:
        refused = one.deliver(batch)
    assert [(each.message.position, each.reason.split("than")[1]) for each in refused] == [
        (2, " the stream's maximum message size"),
        (3, " the server's max_payload"),
    ]
    assert numbers(server, stream) == [1, 4]


def test_a_full_stream_delays_events_and_loses_none(server: NatsServer, make: Callable[..., str]) -> None:
    stream = make(max_msgs=3, discard=DiscardPolicy.NEW)
    batch = [message(number) for number in range(5)]
    with closing(sink(server, stream)) as one:
        with pytest.raises(SinkFailed, match="maximum messages exceeded") as full:
            one.deliver(batch)
        assert full.value.done == 3
        with_stream(server.url, lambda context: context.purge_stream(stream))
        assert one.deliver(batch[3:]) == []
    assert numbers(server, stream) == [3, 4]


def test_nothing_more_is_sent_after_the_lease_was_lost(server: NatsServer, make: Callable[..., str]) -> None:
    stream, asked = make(), iter([True, True, False])

    def ensure_mine() -> None:
        if not next(asked):
            raise LeaseLost

    with closing(sink(server, stream, ensure_mine)) as one, pytest.raises(LeaseLost):
        one.deliver([message(number) for number in range(5)])
    assert numbers(server, stream) == [0, 1]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"storage": StorageType.MEMORY}, "storage must be 'file'"),
        ({"no_ack": True}, "no_ack must be off"),
    ],
    ids=["memory", "no acknowledgements"],
)
def test_a_stream_that_does_not_keep_events_is_refused(
    server: NatsServer, make: Callable[..., str], settings: dict[str, Any], named: str
) -> None:
    with closing(sink(server, make(**settings))) as one, pytest.raises(SinkFailed, match=named):
        one.deliver([message(1)])


def test_wrong_settings_are_named(server: NatsServer, make: Callable[..., str]) -> None:
    stream = make()
    for settings, named in (
        ({"stream": "missing"}, "'missing' does not exist"),
        ({"subject": "other"}, r"the subject 'other\.>'"),
        ({"servers": "nats://127.0.0.1:9"}, r"nats://127\.0\.0\.1:9"),
        ({"credentials_file": "/missing.creds"}, r"/missing\.creds"),
        ({"servers": server.url.replace("nats:", "tls:"), "ca_file": "/missing.pem"}, "cannot be read"),
    ):
        with closing(sink(server, stream, **settings)) as one, pytest.raises(SinkFailed, match=named):
            one.deliver([message(1)])


@pytest.mark.parametrize(
    "settings",
    [
        {"user": "lake"},
        {"user": "lake", "password": SecretStr("a"), "token": SecretStr("b")},
        {"servers": "nats://lake:hidden@127.0.0.1:4222"},
        {"servers": "http://127.0.0.1"},
        {"subject": "a.>"},
        {"stream": "a b"},
        {"ca_file": "/ca.pem"},
    ],
    ids=str,
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        NatsSinkConfig.model_validate({"servers": "nats://127.0.0.1:4222", "stream": "s", **settings})
    assert "hidden" not in " ".join(each["msg"] for each in refused.value.errors())


def test_a_wrong_password_is_named_at_once() -> None:
    with nats_server.start(USERS) as guarded:
        chosen = StreamConfig(name="s", subjects=["s.>"])
        with_stream(guarded.url, lambda stream: stream.add_stream(chosen), user="lake", password=PASSWORD)
        with closing(sink(guarded, "s", user="lake", password=SecretStr(PASSWORD), timeout_s=60)) as right:
            right.deliver([message(1)])
        for wrong in (
            {"user": "lake", "password": SecretStr("wrong-secret")},
            {"token": SecretStr("wrong-secret")},
            {},
        ):
            began = time.monotonic()
            with (
                closing(sink(guarded, "s", timeout_s=60, **wrong)) as one,
                pytest.raises(SinkFailed, match="refused the user name, password, token or credentials") as refused,
            ):
                one.deliver([message(1)])
            assert time.monotonic() - began < 50
            assert "wrong-secret" not in str(refused.value)


def test_a_user_who_may_not_publish_is_named() -> None:
    with nats_server.start(READER) as guarded:
        chosen = StreamConfig(name="s", subjects=["s.>"])
        with_stream(guarded.url, lambda stream: stream.add_stream(chosen), user="lake", password="pw")
        with (
            closing(sink(guarded, "s", user="lake", password=SecretStr("pw"), timeout_s=3)) as one,
            pytest.raises(SinkFailed, match=r"(?i)permissions violation"),
        ):
            one.deliver([message(1)])


@pytest.mark.parametrize(
    ("is_expired", "is_trusted", "named"),
    [(False, True, None), (False, False, "certificate verify failed"), (True, True, "certificate has expired")],
    ids=["right", "not trusted", "expired"],
)
def test_over_tls_the_server_must_prove_its_name(
    tmp_path: Path, *, is_expired: bool, is_trusted: bool, named: str | None
) -> None:
    certificates = Certificates.made(tmp_path / "tls", is_expired=is_expired)
    tls = f'tls {{ cert_file: "{certificates.certificate}", key_file: "{certificates.key}" }}'
    with nats_server.start(tls) as guarded:
        address = guarded.url.replace("nats:", "tls:")
        trusted = {"ca_file": certificates.authority} if is_trusted else {}
        with closing(sink(guarded, "s", servers=address, **trusted)) as one:
            if named is None:
                chosen = StreamConfig(name="s", subjects=["s.>"])
                with_stream(address, lambda stream: stream.add_stream(chosen), tls=certificates.trust())
                assert one.deliver([message(1)]) == []
            else:
                with pytest.raises(SinkFailed, match=named):
                    one.deliver([message(1)])


def test_a_password_is_not_sent_in_clear_to_a_server_without_tls(server: NatsServer, make: Callable[..., str]) -> None:
    address = server.url.replace("nats:", "tls:")
    with (
        closing(sink(server, make(), servers=address, user="lake", password=SecretStr(PASSWORD))) as one,
        pytest.raises(SinkFailed, match="does not use TLS"),
    ):
        one.deliver([message(1)])


@pytest.fixture
def workers(server: NatsServer, make: Callable[..., str], database: None, tmp_path: Path) -> Iterator[Workers]:
    stream = make()
    settings = {"SERVERS": server.url, "STREAM": stream, "SUBJECT": stream, "TIMEOUT_S": "3"}
    with running({f"NATS__{name}": value for name, value in settings.items()}, folder=tmp_path) as started:
        started.stream = stream
        yield started


@pytest.mark.timeout(600)
def test_no_event_is_lost_while_the_broker_stops_and_relays_are_killed(server: NatsServer, workers: Workers) -> None:
    storm(
        workers, stop=server.stop, start=server.start, received=lambda: consumed_from_stream(server.url, workers.stream)
    )


@pytest.mark.timeout(600)
def test_a_relay_that_was_frozen_for_longer_than_its_lease_changes_no_order(
    server: NatsServer, workers: Workers
) -> None:
    frozen(workers, received=lambda: consumed_from_stream(server.url, workers.stream))
