"""What is wrong with a webhook is named, and costs no more than a time-out."""

import http.server
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from pydantic import SecretStr

from lakewarden import config
from lakewarden.config import SinkConfig, WebhookSinkConfig
from lakewarden.doctor import event_sinks
from lakewarden.events.commands import status_lines
from lakewarden.events.models import EventSink
from lakewarden.events.relay import Relay
from lakewarden.events.sinks.interface import Message, SinkFailed
from lakewarden.events.sinks.webhook import WebhookSink
from tests.integration.events.events import change
from tests.servers import raw_server
from tests.servers.certificates import Certificates
from tests.servers.raw_server import Connection, RawServer

SECRET = SecretStr("0123456789abcdef-webhook")
EVENT = Message(1, uuid4(), "t", "k", b"{}")


@pytest.fixture
def receiver() -> Iterator[RawServer]:
    with raw_server.start() as server:
        yield server


def webhook(url: str, **settings: Any) -> WebhookSinkConfig:
    chosen = {"url": url, "secret": SECRET, "timeout_s": 0.5, "allow_private_addresses": True, **settings}
    return WebhookSinkConfig.model_validate(chosen)


def deliver(settings: WebhookSinkConfig) -> None:
    sink = WebhookSink(settings, lambda: None)
    try:
        sink.deliver([EVENT])
    finally:
        sink.close()


def hangs(connection: Connection) -> None:
    connection.over.wait(30)


def talks_nonsense(connection: Connection) -> None:
    connection.send(b"\x00\x01 what?\r\n" * 3)


def hangs_up(connection: Connection) -> None:
    del connection


def drips_a_head(connection: Connection) -> None:
    connection.send(b"HTTP/1.1 204 No Content\r\nX-Slow: ", *[b"x"] * 1000, pause_s=0.1)


def drips_a_body(connection: Connection) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", *[b"x"] * 1000, pause_s=0.1)


def leads_inside(connection: Connection) -> None:
    connection.answer(status="307 Temporary Redirect", Location="http://169.254.169.254/latest/meta-data")


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (hangs, "did not answer: ReadTimeoutError"),
        (talks_nonsense, "did not answer: ProtocolError"),
        (hangs_up, "did not answer: ProtocolError"),
        (drips_a_head, "did not answer: "),
        (drips_a_body, "did not answer: "),
        (leads_inside, "answered 307: redirects are not followed"),
    ],
)
def test_what_a_webhook_does_wrong_is_named(
    receiver: RawServer, answer: Callable[[Connection], None], named: str
) -> None:
    receiver.answer = answer
    began = time.monotonic()
    with pytest.raises(SinkFailed, match=named):
        deliver(webhook(receiver.url))
    assert time.monotonic() - began < 15
    assert len(receiver.asked) == 1


def test_an_answer_without_an_end_is_not_read_to_it(receiver: RawServer) -> None:
    def endless(connection: Connection) -> None:
        connection.send(b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not connection.over.is_set():
            connection.send(b"1000\r\n" + b"x" * 4096 + b"\r\n")

    receiver.answer = endless
    deliver(webhook(receiver.url))


@pytest.fixture
def expired(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A receiver whose certificate has expired; its address and what to trust."""
    certificates = Certificates.made(tmp_path / "tls", is_expired=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/", certificates.authority
    server.shutdown()
    thread.join(10)
    server.server_close()


def test_an_expired_certificate_is_named_by_status_doctor_and_log(
    database: None,
    database_url: str,
    expired: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url, authority = expired
    sink = SinkConfig(webhook=webhook(url, ca_file=authority), from_oldest=True)
    now = config.current()
    events = now.events.model_copy(update={"sinks": {"hook": sink}, "lease_s": 1.5})
    monkeypatch.setattr(config, "current", lambda: now.model_copy(update={"events": events}))
    change("t", 0)
    relay = Relay()
    relay.start()
    try:
        deadline = time.monotonic() + 60
        while not EventSink.objects.filter(failure__gt="").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        relay.stop()
    named = "the certificate is not accepted: certificate has expired"
    assert named in "\n".join(status_lines())
    assert named in caplog.text
    with psycopg.connect(database_url) as connection:
        (finding,) = event_sinks.examine(connection)
    assert named in finding.sentence
