"""A gateway in memory that follows the paper of the protocol, with faults on demand; for tests of the client.

Its log is one list for each source. It accepts sequence numbers without gaps only, as the contract says.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from standalone.ports import HOST

TOKEN = "a-valid-token"

Message = dict[str, Any]
Fault = Callable[["PaperGateway", Message], Message | None]
"""What happens to a batch instead of being stored: an answer, or None to end the connection without one."""


def nacked(reason: str, *, retry_after_ms: int | None = None, text: str = "on demand") -> Fault:
    def answer(_gateway: "PaperGateway", batch: Message) -> Message:
        nack = {"type": "nack", "sequenceNumber": batch["sequenceNumber"], "reason": reason, "errorMessage": text}
        return nack | {"shouldRetry": retry_after_ms is not None, "retryDelayMs": retry_after_ms or 0}

    return answer


def lost(_gateway: "PaperGateway", _batch: Message) -> None:
    """The connection ends before the batch is stored."""


def lost_after_storing(gateway: "PaperGateway", batch: Message) -> None:
    """The batch is stored, but its sender never learns it."""
    gateway.store(batch)


def acked_as(status: str) -> Fault:
    def answer(gateway: "PaperGateway", batch: Message) -> Message:
        gateway.store(batch)
        return {"type": "ack", "sequenceNumber": batch["sequenceNumber"], "status": status}

    return answer


@dataclass
class PaperGateway:
    """`faults`: the next batches' fates, first come, first served. `batches`: everything that arrived, in order."""

    faults: list[Fault] = field(default_factory=list)
    log: dict[str, list[Message]] = field(default_factory=dict)
    batches: list[Message] = field(default_factory=list)
    connects: list[Message] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    status_details: Message = field(default_factory=dict)
    refusals: list[tuple[int, str]] = field(default_factory=list)
    """The next handshakes' statuses and messages; others are decided by the token."""
    valid_token: str = TOKEN
    address: str = ""
    is_silent: bool = False
    most_unanswered: int = 0
    answer_delay_s: float = 0.0

    def store(self, batch: Message) -> None:
        self.log.setdefault(batch["sourceDoId"], []).append(batch)

    def events(self, source: str) -> list[Message]:
        """The events of a source as they lie in the log."""
        return [event for batch in self.log.get(source, []) for event in batch["events"]]

    def acked(self, source: str) -> int:
        return self.log[source][-1]["sequenceNumber"] if self.log.get(source) else 0

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.paths.append(request.path)
        status, message = HTTPStatus.OK.value, ""
        if self.refusals:
            status, message = self.refusals.pop(0)
        elif request.headers.get("Authorization") != f"Bearer {self.valid_token}":
            status, message = HTTPStatus.UNAUTHORIZED.value, "The token is not valid"
        if status == HTTPStatus.OK:
            return None
        body = json.dumps({"error": {"message": message, "type": "X", "code": status}})
        return connection.respond(HTTPStatus(status), body)

    def converse(self, connection: ServerConnection) -> None:
        for content in connection:
            message = json.loads(content)
            answer = self._answer(message)
            if answer is None:
                connection.close(1001, "on demand")
                return
            if not self.is_silent:
                connection.send(json.dumps({"timestamp": time.time_ns() // 1_000_000, **answer}))

    def _answer(self, message: Message) -> Message | None:
        match message["type"]:
            case "connect":
                self.connects.append(message)
                acked = {"lastAckedSequence": self.acked(message["sourceDoId"])}
                return {"type": "status", "state": "receiving", "buffer": {}} | acked | self.status_details
            case "cdc_batch":
                return self._batch(message)
            case "heartbeat":
                return {"type": "pong", "serverTime": 1}
            case "flush_request":
                result = {"success": True, "batchesFlushed": 1, "eventsFlushed": 2, "paths": ["a", "b"]}
                return {"type": "flush_response", "correlationId": message["correlationId"], "result": result}
        return nacked("invalid_format")(self, {"sequenceNumber": 0})

    def _batch(self, batch: Message) -> Message | None:
        self.batches.append(batch)
        time.sleep(self.answer_delay_s)
        number, acked = batch["sequenceNumber"], self.acked(batch["sourceDoId"])
        if number <= acked:
            return {"type": "ack", "sequenceNumber": number, "status": "duplicate"}
        if number != acked + 1:
            return nacked("invalid_sequence", text=f"expected {acked + 1}")(self, batch)
        if self.faults:
            return self.faults.pop(0)(self, batch)
        return acked_as("ok")(self, batch)


@contextmanager
def start() -> Iterator[PaperGateway]:
    """A gateway on a free port; `address` is what clients configure."""
    gateway = PaperGateway()
    with serve(gateway.converse, HOST, 0, process_request=gateway.admit, max_size=4 * 1024 * 1024) as server:
        gateway.address = f"http://{HOST}:{server.socket.getsockname()[1]}/lakehouse"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield gateway
        finally:
            server.shutdown()
            thread.join(10)
