"""Streams of events on a real server with a real worker: over sockets, until the server stops."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import psycopg
import pytest
import urllib3

from standalone.commands import AUDIENCE
from tests.servers.issuer import RunningIssuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared

EVENTS = "/management/v1/events"
SOON_S = 20
INSERT = """
    insert into event_log (at, id, type, project_id, object_type, object_id, actor, assumed_role, request_id, data,
                           created_at)
    select now(), gen_random_uuid(), 'updateTable', '00000000-0000-0000-0000-000000000000', 'table',
           gen_random_uuid()::text, 'oidc~a', '', 'r', jsonb_build_object('filler', repeat('x', %s)), now()
    from generate_series(1, %s)
"""


@pytest.fixture(scope="module")
def server(issuer: RunningIssuer) -> Iterator[LakewardenServer]:
    settings = {
        "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url,
        "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE,
        "LAKEWARDEN__SERVER__WRITE_TIMEOUT_S": "1",
        "LAKEWARDEN__EVENTS__HEARTBEAT_S": "0.5",
    }
    with prepared(settings) as made:
        made.start()
        headers = {"authorization": f"Bearer {issuer.admin_token()}"}
        body = b'{"accept-terms-of-use": true}'
        urllib3.request("POST", f"{made.management_uri}/v1/bootstrap", body=body, headers=headers)
        yield made


@pytest.fixture
def token(issuer: RunningIssuer) -> str:
    return issuer.admin_token()


def stream(server: LakewardenServer, token: str, query: str = "") -> HTTPConnection:
    host, _, port = server.uri.removeprefix("http://").rpartition(":")
    connection = HTTPConnection(host, int(port), timeout=SOON_S)
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    connection.request("GET", EVENTS + query, headers=headers)
    return connection


def add(server: LakewardenServer, count: int, *, size: int = 0) -> None:
    with psycopg.connect(server.settings["LAKEWARDEN__DATABASE__URL"]) as database:
        database.execute(INSERT, [size, count])


def readers(server: LakewardenServer, token: str) -> float:
    answer = urllib3.request(
        "GET", f"{server.management_uri}/v1/server/metrics", headers={"authorization": f"Bearer {token}"}
    )
    (line,) = (each for each in answer.data.decode().splitlines() if each.startswith("lakewarden_event_readers "))
    return float(line.split()[1])


def test_events_arrive_while_the_response_goes_on(server: LakewardenServer, token: str) -> None:
    with closing(stream(server, token)) as connection:
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
        assert answer.readline().startswith(b"id: ")
        add(server, 3)
        found: list[dict[str, str]] = []
        while len(found) < 3:
            line = answer.readline()
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
        assert {each["type"] for each in found} == {"updateTable"}
        assert readers(server, token) == 1


def test_a_reader_who_does_not_read_is_dropped_and_may_resume(server: LakewardenServer, token: str) -> None:
    with closing(stream(server, token)) as connection:
        answer = connection.getresponse()
        first = answer.readline()
        assert connection.sock is not None
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        add(server, 1000, size=20_000)
        until_none(server, token)
    with closing(stream(server, token, f"?pageToken={first[4:].decode().strip()}&pageSize=1000")) as connection:
        answer = connection.getresponse()
        found = 0
        while found < 1000:
            found += answer.readline().startswith(b"data: ")


def until_none(server: LakewardenServer, token: str) -> None:
    deadline = time.monotonic() + 2 * SOON_S
    while readers(server, token):
        assert time.monotonic() < deadline, "the reader still has a place"
        time.sleep(0.1)


def test_a_stop_ends_streams_at_once(server: LakewardenServer, token: str) -> None:
    with closing(stream(server, token)) as connection:
        answer = connection.getresponse()
        answer.readline()
        os.kill(server.process.pid, signal.SIGTERM)
        began = time.monotonic()
        answer.read()  # to its end, not cut off
        assert server.process.wait(SOON_S) == 0
        assert time.monotonic() - began < SOON_S
    server.stop()
