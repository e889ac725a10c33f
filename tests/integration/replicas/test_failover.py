"""The database's primary is lost and its standby promoted, under two servers that remember much of it."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import urllib3

from lakewarden.postgres import history
from tests.integration.replicas.exchange import Lost
from tests.integration.replicas.pair import Lake, Pair, Replica, add_clients, started
from tests.servers import postgres_standby
from tests.servers.issuer import run_issuer
from tests.servers.postgres_standby import Servers

WRITERS = 4
"""Of each server, each on a table of its own."""
ENOUGH = 60
"""Commits acknowledged before the primary is lost, and after the standby is promoted."""
PATIENCE_S = 90.0


@pytest.fixture
def database() -> Iterator[Servers]:
    with postgres_standby.start() as servers:
        yield servers


@pytest.fixture
def pair(database: Servers, tmp_path: Path) -> Iterator[Pair]:
    state_dir = tmp_path / "state"
    signed_in = add_clients(state_dir, people=2)
    settings = {"LAKEWARDEN__DATABASE__URL": database.url}
    with run_issuer(state_dir) as issuer, started(issuer, signed_in(issuer), settings=settings) as both:
        yield both


def _mark(name: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: "x"}}]}


def test_every_acknowledged_commit_is_there_after_a_synchronous_standby_took_over(
    database: Servers, pair: Pair, lake: Lake
) -> None:
    lake.add_namespace("sales")
    names = [f"t{number}" for number in range(2 * WRITERS)]
    for name in names:
        lake.add_table("sales", name)
    database.replicate_synchronously()
    acknowledged: dict[str, set[str]] = {name: set() for name in names}

    async def write(replica: Replica, name: str, over: asyncio.Event) -> None:
        for number in count():
            if over.is_set():
                return
            key = f"k{number}"
            try:
                answer = await pair.exchange.answer(
                    replica.call(pair.admin, "POST", lake.tables("sales", name), _mark(key))
                )
            except Lost:
                await asyncio.sleep(0.1)
                continue
            assert answer.status in {200, 500, 502, 503, 504}, answer
            if answer.status == 200:
                acknowledged[name].add(key)
            else:
                await asyncio.sleep(0.1)

    async def lose() -> None:
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks, asyncio.timeout(PATIENCE_S):
            for number, name in enumerate(names):
                tasks.create_task(write(pair.both[number % 2], name, over))
            await _until(lambda: _all_have(acknowledged, ENOUGH // len(names)))
            await asyncio.to_thread(database.lose_the_primary)
            before = {name: len(keys) for name, keys in acknowledged.items()}
            await asyncio.to_thread(database.promote_the_standby)
            await asyncio.to_thread(_start_again, pair)
            await _until(lambda: all(len(acknowledged[name]) > 2 + before[name] for name in names))
            over.set()

    pair.run(lose())
    for name in names:
        for replica in pair.both:
            told = replica.done("GET", lake.tables("sales", name))["metadata"]["properties"]
            assert acknowledged[name] <= set(told)


def test_nothing_that_the_lost_primary_alone_knew_is_served_when_its_numbers_are_given_again(
    database: Servers, pair: Pair, lake: Lake
) -> None:
    lake.add_namespace("sales")
    table_id = lake.add_table("sales", "orders")
    place = lake.tables("sales", "orders")
    grants = f"{lake.managed}/table/{table_id}/grants"
    eve, amy = pair.people
    database.cut_off_the_standby()
    for replica in pair.both:  # versions and epochs that only the primary has, known to both servers
        assert replica.ask(eve, "GET", place).status == 404
    pair.a.done("POST", grants, {"writes": [eve.entry("select")]})
    pair.a.done("POST", place, _mark("lost"))
    tags = set()
    for replica in pair.both:
        answer = replica.ask(eve, "GET", place)
        assert "lost" in answer.json()["metadata"]["properties"]
        tags.add(answer.headers["etag"])
    database.lose_the_primary()
    database.promote_the_standby()
    _start_again(pair)

    # the same numbers again: one grant to somebody else, and one commit
    pair.a.done("POST", grants, {"writes": [amy.entry("select")]})
    pair.a.done("POST", place, _mark("kept"))
    for replica in pair.both:
        assert replica.ask(eve, "GET", place).status == 404
        for tag in tags:
            answer = replica.ask(amy, "GET", place, if_none_match=tag)
            assert answer.status == 200
            properties = answer.json()["metadata"]["properties"]
            assert "kept" in properties
            assert "lost" not in properties


def _start_again(pair: Pair) -> None:
    """As what runs the servers does: it asks for their health, and starts those that have ended."""
    for replica in pair.both:
        server = replica.server
        end = time.monotonic() + PATIENCE_S
        while not server.process.exited and time.monotonic() < end:
            with suppress(urllib3.exceptions.HTTPError):
                urllib3.request("GET", f"{server.uri}/health/ready", timeout=5, retries=False)
            time.sleep(0.2)
        assert server.process.exit_code == history.ENDED, server.log_text()[-2000:]
        assert "its history has changed" in server.log_text()
        server.start()


def _all_have(acknowledged: dict[str, set[str]], wanted: int) -> bool:
    return all(len(keys) >= wanted for keys in acknowledged.values())


async def _until(is_so: Any) -> None:
    while not is_so():  # noqa: ASYNC110 the database has no event to wait for
        await asyncio.sleep(0.05)
