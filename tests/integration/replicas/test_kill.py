"""One server is killed in the middle of changes: the other continues, and each change is complete or absent.

Complete: the change itself, its audit row and its event, found by the id of its request.
"""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import psycopg
import pytest

from lakewarden.context import PrincipalId
from tests.integration.catalog.observed import local
from tests.integration.replicas.exchange import Call, Lost
from tests.integration.replicas.pair import SCHEMA, Lake, Pair, Person, Replica

KILLS = 3
WRITERS = 6
"""Of each server."""
ENOUGH = 5 * WRITERS
"""Answers before a kill, and after it: more than the killed server can still have been giving."""
_OK = {200, 204}


@dataclass
class Scene:
    lake: Lake
    table_id: str
    answered: dict[str, int] = field(default_factory=dict)
    """Status by request id."""
    lost: set[str] = field(default_factory=set)

    @property
    def grants(self) -> str:
        return f"{self.lake.managed}/table/{self.table_id}/grants"

    def calls(self, replica: Replica, person: Person, *, named: str) -> Iterator[Call]:
        """Without end: a grant, a commit, a new table, the revocation of the grant; each with its own request id."""
        for number in count():
            side = "deletes" if number % 2 else "writes"
            yield from (
                replica.call(
                    replica.pair.admin, "POST", path, body, x_request_id=f"{named}-{person.name}-{number}-{kind}"
                )
                for kind, path, body in (
                    ("grant", self.grants, {side: [person.entry("select")]}),
                    ("commit", self.lake.tables("sales", "orders"), _mark(f"{named}-{person.name}-{number}-commit")),
                    ("table", self.lake.tables("sales"), {"name": f"{named}-{person.name}-{number}", "schema": SCHEMA}),
                )
            )


class Creations(Scene):
    """Nothing but new tables and namespaces, so that rights are known and they share statements."""

    def calls(self, replica: Replica, person: Person, *, named: str) -> Iterator[Call]:
        for number in count():
            name = f"{named}-{person.name}-{number}"
            for kind, path, body in (
                ("table", self.lake.tables("sales"), {"name": name, "schema": SCHEMA}),
                ("namespace", self.lake.path("namespaces"), {"namespace": [name]}),
            ):
                yield replica.call(replica.pair.admin, "POST", path, body, x_request_id=f"{name}-{kind}")


def _mark(name: str) -> dict[str, Any]:
    """A commit that leaves its name in the table."""
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: "x"}}]}


async def _write(scene: Scene, replica: Replica, person: Person, *, named: str, over: asyncio.Event) -> None:
    for call in scene.calls(replica, person, named=named):
        if over.is_set():
            return
        request_id = call.headers["x-request-id"]
        try:
            scene.answered[request_id] = (await replica.pair.exchange.answer(call)).status
        except Lost:
            scene.lost.add(request_id)
            return


async def _until_answered(scene: Scene, count: int) -> None:
    async with asyncio.timeout(60):
        while len(scene.answered) < count:  # noqa: ASYNC110 who writes is not told that somebody waits
            await asyncio.sleep(0.01)


async def _killed_in_the_middle(scene: Scene, pair: Pair, *, named: str) -> int:
    """Write through both servers, and kill the second; returns how often the first answered after that."""
    over = asyncio.Event()
    people = iter(pair.people)
    writing = [
        asyncio.create_task(_write(scene, replica, next(people), named=f"{named}{name}", over=over))
        for name, replica in zip("ab", pair.both, strict=True)
        for _ in range(WRITERS)
    ]
    await _until_answered(scene, len(scene.answered) + ENOUGH)
    os.kill(pair.b.server.process.pid, signal.SIGKILL)
    before = len(scene.answered)
    await _until_answered(scene, before + ENOUGH)
    over.set()
    await asyncio.gather(*writing)
    return len(scene.answered) - before


_SESSIONS_OF_B = "select 1 from pg_stat_activity where application_name = 'replica_b' and datname = current_database()"


@contextmanager
def _database(pair: Pair) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(pair.a.server.settings["LAKEWARDEN__DATABASE__URL"], autocommit=True) as connection:
        deadline = time.monotonic() + 60
        # what a killed client has sent already, the database still does; other tests have such servers elsewhere
        while connection.execute(_SESSIONS_OF_B).fetchone():
            assert time.monotonic() < deadline, "the killed server's sessions do not end"
            time.sleep(0.01)
        yield connection


def _recorded(connection: psycopg.Connection[tuple[Any, ...]], *, named: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Type and data of the change of each request id, in order; its audit row and its event are one each, and agree."""
    like = [f"{named}%"]
    audited = connection.execute(
        "select request_id, action, object_id, details from audit_entry "
        "where request_id like %s and outcome = 'done' order by id",
        like,
    ).fetchall()
    told = connection.execute(
        "select request_id, type, object_id, data from outbox_event where request_id like %s order by sequence", like
    ).fetchall()
    assert sorted(map(_text, audited)) == sorted(map(_text, told))
    assert set(Counter(request_id for request_id, *_ in audited).values()) == {1}
    return {request_id: (action, data) for request_id, action, _, data in audited}


def _text(row: tuple[Any, ...]) -> str:
    return json.dumps([str(each) if not isinstance(each, dict) else each for each in row], sort_keys=True)


def _check(scene: Scene, pair: Pair, *, named: str) -> None:
    with _database(pair) as connection:
        recorded = _recorded(connection, named=named)
        rows = connection.execute(
            "select g.principal_id from authz_grant g join tabular t on t.id::text = g.object_id "
            "where t.uuid = %s and g.privilege = 'select'",
            [scene.table_id],
        )
        granted = {PrincipalId(principal) for (principal,) in rows.fetchall()}
        tables = connection.execute(
            "select t.name from tabular t join namespace n on n.id = t.namespace_id where n.warehouse_id = %s",
            [scene.lake.id],
        ).fetchall()
    mine = {request_id for request_id in scene.answered if request_id.startswith(named)}
    assert mine <= set(recorded)
    assert set(recorded) - mine <= scene.lost
    assert granted == _replayed(recorded)
    made = {name for (name,) in tables if name.startswith(named)}
    assert made == {request_id.removesuffix("-table") for request_id in recorded if request_id.endswith("-table")}
    commits = {request_id for request_id in recorded if request_id.endswith("-commit")}
    told = pair.a.done("GET", scene.lake.tables("sales", "orders"))["metadata"]["properties"]
    assert {name for name in told if name.startswith(named)} == commits
    for name in sorted(made):
        location = pair.a.done("GET", scene.lake.tables("sales", name))["metadata-location"]
        assert local(location).is_file()


def _replayed(recorded: dict[str, tuple[str, dict[str, Any]]]) -> set[str]:
    """Who holds the right when the changes of grants are made one after the other."""
    found: set[str] = set()
    for action, data in recorded.values():
        if action == "updateGrants":
            found |= {each["principal"] for each in data["writes"]}
            found -= {each["principal"] for each in data["deletes"]}
    return found


def _decisions(scene: Scene, replicas: tuple[Replica, ...]) -> list[set[str]]:
    """Who of the writers' people may load the table, as each server says."""
    path = scene.lake.tables("sales", "orders")
    people = replicas[0].pair.people[: 2 * WRITERS]
    calls = [replica.call(person, "GET", path) for replica in replicas for person in people]
    answers = replicas[0].pair.ask(calls)
    assert {answer.status for answer in answers} <= {200, 404}
    return [
        {
            person.id
            for person, answer in zip(people, answers[start : start + len(people)], strict=True)
            if answer.status == 200
        }
        for start in range(0, len(answers), len(people))
    ]


def test_what_a_killed_server_was_doing_is_whole_or_not_there(
    pair: Pair, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.add_namespace("sales")
    scene = Scene(lake, lake.add_table("sales", "orders"))
    people = pair.people[: 2 * WRITERS]
    for number in range(KILLS):
        named = f"kill{number}"
        after = pair.run(_killed_in_the_middle(scene, pair, named=named))
        assert after > WRITERS, "the other server went on"
        assert set(scene.answered.values()) <= _OK, Counter(scene.answered.values())
        _check(scene, pair, named=named)
        with pytest.raises(Lost):
            pair.b.ask(pair.admin, "GET", "/health")
        held = _held(scene, pair)
        assert _decisions(scene, (pair.a,)) == [held]
        pair.b.server.stop()
        pair.b.server.start()
        assert _decisions(scene, pair.both) == [held, held]
        pair.b.done("POST", scene.grants, {"deletes": [person.entry("select") for person in people]})
        assert _decisions(scene, pair.both) == [set(), set()]
    with capsys.disabled():
        print(f"\nkills: {KILLS}, changes answered: {len(scene.answered)}, lost: {len(scene.lost)}")  # noqa: T201
    assert scene.lost


_CREATED = """
    select o.name || o.suffix, (select count(*) from authz_grant g where g.object_id = o.id and g.privilege = 'ownership'),
        o.documents
    from (
        select name, '-table' as suffix, id::text, namespace_id,
            (select count(*) from tabular_document d where d.tabular_id = t.id) as documents from tabular t
        union all
        select path[1], '-namespace', id::text, id, 1 from namespace
    ) o
    join namespace n on n.id = o.namespace_id where n.warehouse_id = %s and o.name like %s
"""


def test_creations_of_a_killed_server_are_whole_or_not_there(pair: Pair, lake: Lake) -> None:
    lake.add_namespace("sales")
    scene = Creations(lake, lake.add_table("sales", "first"))
    files = local(pair.a.done("GET", lake.tables("sales", "first"))["metadata-location"]).parents[2]
    for number in range(KILLS):
        named = f"creations{number}"
        after = pair.run(_killed_in_the_middle(scene, pair, named=named))
        assert after > WRITERS, "the other server went on"
        assert set(scene.answered.values()) <= _OK, Counter(scene.answered.values())
        with _database(pair) as connection:
            recorded = _recorded(connection, named=named)
            created = connection.execute(_CREATED, [lake.id, f"{named}%"]).fetchall()
        assert {name for name, *_ in created} == set(recorded)
        assert {(owners, documents) for _, owners, documents in created} == {(1, 1)}
        mine = {request_id for request_id in scene.answered if request_id.startswith(named)}
        assert mine <= set(recorded) <= mine | scene.lost
        for name in sorted(recorded):
            if name.endswith("-table"):
                told = pair.a.done("GET", lake.tables("sales", name.removesuffix("-table")))
                assert local(told["metadata-location"]).is_file()
        pair.b.server.stop()
        pair.b.server.start()
    tables = sum(name.endswith("-table") for name in scene.answered) + 1
    lost = sum(name.endswith("-table") for name in scene.lost)
    assert tables <= len(list(files.glob("*/metadata/*.json"))) <= tables + lost, "no file but what a kill explains"


def _held(scene: Scene, pair: Pair) -> set[str]:
    told = pair.a.done("GET", scene.grants)["grants"]
    return {each["principal"]["user"] for each in told if each["privilege"] == "select"}
