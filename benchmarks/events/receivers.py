"""What receives events in `python -m benchmarks.events`: a webhook of our own, and readers of the brokers."""

import asyncio
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import nats
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from nats.js.api import StreamConfig

Events = list[dict[str, Any]]
PARTITIONS = 3


class Webhook(ThreadingHTTPServer):
    """It keeps what it receives, and answers after `delay_s`, or with 503 while it `is_away`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.events: Events = []
        self.delay_s, self.is_away = 0.0, False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: relays are killed while they send."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        assert isinstance(server, Webhook)  # noqa: S101 it is the only one with this handler
        time.sleep(server.delay_s)
        if not server.is_away:
            server.events.append(json.loads(body))
        self.send_response(503 if server.is_away else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: there is one request for each event."""


def make_topic(address: str, name: str) -> None:
    client = AdminClient({"bootstrap.servers": address})
    client.create_topics([NewTopic(name, PARTITIONS)])[name].result(60)


def of_kafka(address: str, topic: str) -> Events:
    """All records, in the order of each partition."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": str(uuid4()), "enable.auto.commit": False})
    found: Events = []
    for number in range(PARTITIONS):
        place = TopicPartition(topic, number, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=60)
        consumer.assign([place])
        offset = 0
        while offset < end and (record := consumer.poll(30)) is not None:
            offset = (record.offset() or 0) + 1
            found.append(json.loads(record.value() or b""))
    consumer.close()
    return found


def make_stream(url: str, name: str) -> None:
    async def made() -> None:
        client = await nats.connect(url)
        await client.jetstream().add_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        await client.close()

    asyncio.run(made())


def of_nats(url: str, stream: str) -> Events:
    """All messages of the stream, in its order."""

    async def read() -> Events:
        client = await nats.connect(url)
        context = client.jetstream()
        count = (await context.stream_info(stream)).state.messages
        inbox = await context.pull_subscribe("", stream=stream)
        found: Events = []
        while len(found) < count:
            for each in await inbox.fetch(min(500, count - len(found)), timeout=20):
                await each.ack()
                found.append(json.loads(each.data))
        await client.close()
        return found

    return asyncio.run(read())
