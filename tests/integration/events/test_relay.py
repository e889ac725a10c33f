"""The relay delivers each event at least once and in order per object, whatever fails, and whoever else relays."""

import json
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from django.utils import timezone
from pydantic import SecretStr

from lakewarden import config
from lakewarden.config import SinkConfig, WebhookSinkConfig
from lakewarden.errors import NotFound
from lakewarden.events import dead_letters, log, served_sink
from lakewarden.events.commands import replayed, status_lines
from lakewarden.events.models import DeadLetter, EventSink, LoggedEvent
from lakewarden.events.relay import Relay
from lakewarden.events.sinks.interface import Message, Refused, SinkFailed
from lakewarden.events.sinks.webhook import WebhookSink, signature
from tests.integration.events.events import change

SECRET = "0123456789abcdef-webhook"
DEADLINE_S = 60


def held() -> None:
    """The lease of a sink that is used without a relay."""


class Memory:
    """A sink in this process; `faults` are raised, or asked, in front of the next deliveries."""

    def __init__(self) -> None:
        self.received: list[Message] = []
        self.faults: list[Exception] = []
        self.refuses: Callable[[Message], bool] = lambda _: False

    def deliver(self, messages: Sequence[Message]) -> Sequence[Refused]:
        if self.faults:
            raise self.faults.pop(0)
        refused = [Refused(each, "too large") for each in messages if self.refuses(each)]
        self.received += [each for each in messages if not self.refuses(each)]
        return refused

    def close(self) -> None:
        pass

    @property
    def numbers(self) -> list[int]:
        return [json.loads(each.body)["data"]["version"] for each in self.received]


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, database: None) -> Memory:
    found = Memory()
    monkeypatch.setattr(served_sink, "build", lambda *_: found)
    return found


@contextmanager
def relaying(monkeypatch: pytest.MonkeyPatch, **sinks: SinkConfig) -> Iterator[Relay]:
    now = config.current()
    events = now.events.model_copy(update={"sinks": sinks, "lease_s": 1.5})
    monkeypatch.setattr(config, "current", lambda: now.model_copy(update={"events": events}))
    running = Relay()
    running.start()
    try:
        yield running
    finally:
        running.stop()


def sink(**settings: Any) -> SinkConfig:
    return SinkConfig.model_validate({"log": {}, "from_oldest": True, **settings})


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_events_arrive_in_their_order_as_cloud_events(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        change("t", number)
    with relaying(monkeypatch, lake=sink(batch=7)):
        until(lambda: len(memory.received) == 30, "all events")
        change("t", 30)
        until(lambda: len(memory.received) == 31, "an event while it runs")
        until(lambda: EventSink.objects.get(name="lake").delivered == 31, "the position")
    assert memory.numbers == list(range(31))
    event = json.loads(memory.received[0].body)
    assert event.pop("time").startswith("20")
    assert event == {
        "specversion": "1.0",
        "id": str(memory.received[0].id),
        "source": "urn:lakewarden",
        "type": "updateTable",
        "subject": "table/t",
        "datacontenttype": "application/json",
        "dataschema": "urn:lakewarden:event:updateTable:1",
        "sequence": f"{1:019d}",
        "partitionkey": "t",
        "objecttype": "table",
        "objectid": "t",
        "actor": "oidc~alice",
        "requestid": "r",
        "projectid": "p",
        "data": event["data"],
    }


def test_a_sink_that_fails_gets_the_same_events_later_and_says_why(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.faults = [SinkFailed("the broker is away")] * 2
    change("t", 0)
    with relaying(monkeypatch, lake=sink()):
        until(lambda: EventSink.objects.filter(failure="the broker is away").exists(), "the failure")
        until(lambda: len(memory.received) == 1, "the event")
        until(lambda: EventSink.objects.get(name="lake").failure == "", "the end of the failure")
    assert EventSink.objects.get(name="lake").failing_since is None


def test_what_a_sink_has_taken_is_not_sent_again_after_a_failure(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        change("t", number)
    memory.faults = [SinkFailed("in the middle", done=3)]
    with relaying(monkeypatch, lake=sink()):
        until(lambda: bool(memory.received), "the rest")
    assert memory.numbers == [3]


def test_what_a_sink_has_taken_beyond_a_failure_is_not_sent_again_but_after_a_replay(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        change(f"t{number}", number)
    memory.faults = [SinkFailed("full for some", done=1, ahead={3, 5}), SinkFailed("still full", ahead={2})]
    with relaying(monkeypatch, lake=sink()):
        until(lambda: EventSink.objects.filter(name="lake", delivered=6).exists(), "the rest")
        assert memory.numbers == [3, 5]
        assert EventSink.objects.get(name="lake").sent == 6
        replayed("lake", timezone.now() - timedelta(hours=1))
        until(lambda: len(memory.received) == 8, "all again")
    assert memory.numbers[2:] == list(range(6))


def test_a_poison_event_is_set_aside_and_the_others_arrive(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        change("t", number)
    memory.refuses = lambda message: b'"version": 1' in message.body or b'"version":1' in message.body
    with relaying(monkeypatch, lake=sink()):
        until(lambda: len(memory.received) == 2, "the others")
        until(lambda: EventSink.objects.get(name="lake").delivered == 3, "the position")
    (dead,) = DeadLetter.objects.all()
    assert (dead.sink, dead.reason, dead.event["data"]["version"]) == ("lake", "too large", 1)


def test_a_dead_letter_is_sent_once_more_when_it_is_asked_for(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.refuses = lambda _: True
    change("t", 0)
    with relaying(monkeypatch, lake=sink()):
        until(lambda: DeadLetter.objects.filter(attempts=1).exists(), "the dead letter")
        dead_letters.send_again("lake", None)
        until(lambda: DeadLetter.objects.filter(attempts=2, again=False).exists(), "the second attempt")
        memory.refuses = lambda _: False
        dead_letters.send_again("lake", None)
        until(lambda: not DeadLetter.objects.exists(), "the third attempt")
    assert memory.numbers == [0]
    assert memory.received[0].key == "t"


def test_an_idle_relay_looks_once_for_all_sinks_and_reads_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()

    def counted(name: str) -> None:
        original = getattr(log, name)

        def counting(*arguments: Any, **named: Any) -> Any:
            asked[name] += 1
            return original(*arguments, **named)

        monkeypatch.setattr(log, name, counting)

    for name in ("look", "read"):
        counted(name)
    with relaying(monkeypatch, **{f"s{number}": sink() for number in range(10)}):
        until(lambda: EventSink.objects.filter(leased_by__gt="").count() == 10, "all leases")
        time.sleep(2)  # it looks less often
        asked.clear()
        began = time.monotonic()
        time.sleep(4)
        made, passed = dict(asked), time.monotonic() - began
    assert 1 <= made["look"] <= passed + 2
    assert "read" not in made


def test_a_filter_skips_events_and_the_position_goes_on(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    change("a", 0)
    change("b", 1, kind="createTable")
    change("c", 2, project="q")
    with relaying(monkeypatch, lake=sink(types="createTable,updateTable", projects="q")):
        until(lambda: len(memory.received) == 1, "the event")
        until(lambda: EventSink.objects.get(name="lake").delivered == 3, "the position")
    assert memory.numbers == [2]


def test_a_new_sink_begins_with_the_next_event(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    change("t", 0)
    with relaying(monkeypatch, first=sink()):
        until(lambda: len(memory.received) == 1, "the first sink")
    memory.received.clear()
    with relaying(monkeypatch, second=sink(from_oldest=False)):
        until(lambda: EventSink.objects.filter(name="second").exists(), "the second sink")
        change("t", 1)
        until(lambda: bool(memory.received), "the event")
    assert memory.numbers == [1]


def test_two_relays_share_a_sink_and_one_takes_over_from_the_other(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with relaying(monkeypatch, lake=sink()) as first, relaying(monkeypatch, lake=sink()):
        for number in range(20):
            change("t", number)
        until(lambda: len(memory.received) == 20, "all events")
        first.stop()
        change("t", 20)
        until(lambda: len(memory.received) == 21, "the event after the first has stopped")
    assert memory.numbers == list(range(21))


def test_a_relay_that_lost_its_lease_stops_delivering(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    change("t", 0)
    with relaying(monkeypatch, lake=sink()):
        until(lambda: len(memory.received) == 1, "the first event")
        later = timezone.now() + timedelta(hours=1)
        EventSink.objects.filter(name="lake").update(leased_by="another", leased_until=later)
        change("t", 1)
        time.sleep(1)
    assert memory.numbers == [0]
    assert EventSink.objects.get(name="lake").leased_by == "another"


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server: Any = self.server
        server.requests.append((dict(self.headers), body))
        status = server.statuses.pop(0) if server.statuses else 204
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:9/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    server.requests, server.statuses = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join(10)
    server.server_close()


def webhook(receiver: Any, **settings: Any) -> WebhookSinkConfig:
    url = f"http://127.0.0.1:{receiver.server_port}/events?tenant=a"
    chosen = {"url": url, "secret": SecretStr(SECRET), "allow_private_addresses": True, **settings}
    return WebhookSinkConfig.model_validate(chosen)


def test_a_webhook_receives_signed_events(database: None, receiver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver.statuses = [500, 302, 422]
    for number in range(2):
        change("t", number)
    with relaying(monkeypatch, hook=SinkConfig(webhook=webhook(receiver), from_oldest=True)):
        until(lambda: EventSink.objects.filter(name="hook", delivered=2).exists(), "both events")
    headers, body = receiver.requests[-1]
    message = Message(0, headers["webhook-id"], "", "", body)
    assert headers["webhook-signature"] == signature(SECRET, message, headers["webhook-timestamp"])
    assert headers["Content-Type"] == "application/cloudevents+json"
    # tried again after 500 and after a redirect, which is not followed; never again after 422
    versions = [json.loads(each)["data"]["version"] for _, each in receiver.requests]
    assert versions == [0, 0, 0, 1]
    assert [each.event["data"]["version"] for each in DeadLetter.objects.all()] == [0]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254"])
def test_a_webhook_never_reaches_private_addresses_unless_it_may(host: str) -> None:
    settings = WebhookSinkConfig(url=f"http://{host}:9/", secret=SecretStr(SECRET))
    hook = WebhookSink(settings, held)
    with pytest.raises(SinkFailed, match="private address"):
        hook.deliver([Message(1, uuid4(), "t", "k", b"{}")])


def test_the_command_line_tells_how_far_sinks_are_and_delivers_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    change("t", 0)
    with relaying(monkeypatch, lake=sink()):
        until(lambda: EventSink.objects.filter(name="lake", delivered=1).exists(), "the position")
        assert [each.split(",")[0] for each in status_lines()] == ["0 events wait for a worker", "lake: 0 events wait"]
        an_hour_ago = timezone.now() - timedelta(hours=1)
        assert replayed("lake", an_hour_ago) == "1 event will be delivered again to 'lake'"
        until(lambda: len(memory.received) >= 2, "the event again")
    assert memory.received[0].id == memory.received[1].id
    with pytest.raises(NotFound, match="known: lake"):
        replayed("laek", an_hour_ago)


def test_positions_go_on_after_all_days_of_the_log_are_gone(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    change("t", 0)
    with relaying(monkeypatch, lake=sink()):
        until(lambda: EventSink.objects.filter(name="lake", delivered=1).exists(), "the first event")
        LoggedEvent.objects.all().delete()
        assert [each.split(",")[0] for each in status_lines()] == ["0 events wait for a worker", "lake: 0 events wait"]
        change("t", 1)
        until(lambda: len(memory.received) == 2, "the event after them")
    assert memory.numbers == [0, 1]


@pytest.fixture
def secure_receiver(receiver: Any, tmp_path: Path) -> Path:
    """The receiver over TLS, with a certificate of its own for `hook.example`; returns the certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hook.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("hook.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "hook.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
    return trusted


@pytest.mark.parametrize("host", ["hook.example", "other.example"])
def test_a_webhook_over_tls_must_prove_the_name_in_its_address(
    receiver: Any, secure_receiver: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda name, *rest, **more: found if name == host else real(name, *rest, **more)
    )
    url = f"https://{host}:{receiver.server_port}/events"
    hook = WebhookSink(webhook(receiver, url=url, ca_file=secure_receiver), held)
    if host == "hook.example":
        assert hook.deliver([Message(1, uuid4(), "t", "k", b"{}")]) == []
        assert receiver.requests[0][0]["Host"] == f"{host}:{receiver.server_port}"
    else:
        with pytest.raises(SinkFailed, match=r"TLS connection to the webhook failed: .*other\.example"):
            hook.deliver([Message(1, uuid4(), "t", "k", b"{}")])
        assert receiver.requests == []
    hook.close()
