"""Commits as a socket brings them: many ahead of their answers, in pieces, by clients that do not wait."""

import json
import socket
from typing import Any

import pytest

from tests.integration.replicas.pair import Lake, Pair

SOON_S = 20
AHEAD = 20


@pytest.fixture
def orders(lake: Lake) -> str:
    """The path of a table to which the administrator has committed through the first server."""
    lake.add_namespace("sales")
    lake.add_table("sales", "orders")
    path = lake.tables("sales", "orders")
    lake.pair.a.done("POST", path, body(first="1"))
    return path


def body(**properties: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}


def request(pair: Pair, path: str, **properties: str) -> tuple[bytes, bytes]:
    """Head and body."""
    content = json.dumps(body(**properties)).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {pair.admin.token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode(), content


def read_answers(connection: socket.socket, number: int) -> list[dict[str, Any]]:
    """The contents of so many answers, which must all be successes."""
    stream = connection.makefile("rb")
    found = []
    for _ in range(number):
        assert stream.readline().startswith(b"HTTP/1.1 200 ")
        headers = {}
        while line := stream.readline().strip():
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        found.append(json.loads(stream.read(int(headers[b"content-length"]))))
    return found


def number_of(pair: Pair, path: str) -> str:
    found: str = pair.b.done("GET", path)["metadata"]["properties"]["number"]
    return found


def test_commits_sent_ahead_are_answered_in_order(pair: Pair, orders: str) -> None:
    with socket.create_connection(("127.0.0.1", pair.a.port), SOON_S) as connection:
        sent = [b"".join(request(pair, orders, number=str(each))) for each in range(AHEAD)]
        connection.sendall(b"".join(sent))
        answers = read_answers(connection, AHEAD)
    assert [each["metadata"]["properties"]["number"] for each in answers] == [str(each) for each in range(AHEAD)]
    assert len({each["metadata-location"] for each in answers}) == AHEAD
    assert number_of(pair, orders) == str(AHEAD - 1)


def test_a_commit_may_come_byte_by_byte(pair: Pair, orders: str) -> None:
    head, content = request(pair, orders, number="7")
    with socket.create_connection(("127.0.0.1", pair.a.port), SOON_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head)
        for place in range(len(content)):
            connection.sendall(content[place : place + 1])
        (answer,) = read_answers(connection, 1)
    assert answer["metadata"]["properties"]["number"] == "7"


def test_clients_that_do_not_wait_for_answers_harm_nobody(pair: Pair, orders: str) -> None:
    for number in range(AHEAD):
        head, content = request(pair, orders, number=str(number))
        with socket.create_connection(("127.0.0.1", pair.a.port), SOON_S) as connection:
            connection.sendall(head + content[: number * len(content) // (AHEAD - 1)])
    pair.a.done("POST", orders, body(number="last"))
    metadata = pair.b.done("GET", orders)["metadata"]
    # half a body is not a commit, and the complete request may be carried out at any time
    assert metadata["properties"]["number"] in {"last", str(AHEAD - 1)}
    assert len(metadata["metadata-log"]) <= 3
