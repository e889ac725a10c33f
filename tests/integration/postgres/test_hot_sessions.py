"""Statements that the event loop sends by itself: what the driver's cursor would answer, and its errors."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import psycopg
import pytest
from pydantic import SecretStr

from lakewarden import config
from lakewarden.hot.sessions import Lookup, Session
from lakewarden.postgres import limits
from lakewarden.postgres.bounded import Silent
from lakewarden.postgres.opening import open_async
from tests.servers.silent_proxy import silent_proxy

_BRIEF = limits.Limits(1, 0.5, 1, 1)
_ALL = """
    select k.i, k.id, k.name, k.number, k.name is null, array[k.name, 'x'] from
    unnest(%s::uuid[], %s::text[], %s::bigint[]) with ordinality as k(id, name, number, i)
"""
_ONE: UUID = uuid4()
_COLUMNS: list[list[Any]] = [[_ONE, None, _ONE], ["żółw", "", None], [-1, None, 2**63 - 1]]


async def _session(url: str) -> Session:
    settings = config.current().database.model_copy(update={"url": SecretStr(url)})
    return Session(await open_async(settings, _BRIEF, name="probe"))


def fetched(url: str, text: str, columns: Sequence[Sequence[object]], *, times: int = 1) -> list[tuple[Any, ...]]:
    async def ask() -> list[tuple[Any, ...]]:
        session, statement = await _session(url), Lookup(text)
        try:
            for _ in range(times - 1):
                await session.fetch(statement, columns)
            return await session.fetch(statement, columns)
        finally:
            await session.connection.close()

    return asyncio.run(ask())


def test_values_of_each_type_come_back_as_they_went(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        expected = connection.execute(_ALL.encode(), _COLUMNS, binary=True).fetchall()
    assert fetched(database_url, _ALL, _COLUMNS) == expected
    assert fetched(database_url, _ALL, _COLUMNS, times=3) == expected


def test_keys_that_do_not_fit_into_the_socket_are_sent_piece_by_piece(database_url: str) -> None:
    names = [f"{number}" * 300_000 for number in range(10)]
    found = fetched(
        database_url, "select k.i, length(k.name) from unnest(%s::text[]) with ordinality k(name, i)", [names]
    )
    assert found == [(number + 1, 300_000) for number in range(10)]


def test_a_long_answer_arrives_whole(database_url: str) -> None:
    text = "select k.i, repeat('x', k.length::int) from unnest(%s::bigint[]) with ordinality k(length, i)"
    assert [len(row[1]) for row in fetched(database_url, text, [[5_000_000, 0, 5_000_000]])] == [
        5_000_000,
        0,
        5_000_000,
    ]


def test_what_fails_only_when_it_commits_is_an_error_too(database_url: str) -> None:
    """The rows of such a statement arrive before the error, and nothing of it stays."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "create table late (id bigint primary key, above bigint references late deferrable initially deferred)"
        )
        try:
            text = "insert into late select k, k + 1 from unnest(%s::bigint[]) as k returning id"
            for times in (1, 2):
                with pytest.raises(psycopg.errors.ForeignKeyViolation):
                    fetched(database_url, text, [[1]], times=times)
            assert connection.execute("select count(*) from late").fetchone() == (0,)
        finally:
            connection.execute("drop table late")


@pytest.mark.parametrize(
    ("text", "column", "error"),
    [
        ("select k.i, 1 / k.n from unnest(%s::bigint[]) with ordinality k(n, i)", [0], psycopg.errors.DivisionByZero),
        ("select k.n from nowhere join unnest(%s::bigint[]) k(n) on true", [0], psycopg.errors.UndefinedTable),
        ("select pg_sleep(k.n) from unnest(%s::bigint[]) k(n)", [10], psycopg.errors.QueryCanceled),
        (
            "select pg_terminate_backend(pg_backend_pid()), k.n from unnest(%s::bigint[]) k(n)",
            [1],
            psycopg.OperationalError,
        ),
        ("select k.n from unnest(%s::text[]) k(n)", ["\ud800"], ValueError),
        ("select k.n from unnest(%s::text[]) k(n)", ["\x00"], psycopg.Error),
    ],
)
def test_what_goes_wrong_is_the_drivers_error(
    database_url: str, text: str, column: list[object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        fetched(database_url, text, [column])


def test_a_silent_database_is_hung_up_on(database_url: str) -> None:
    port = urlsplit(database_url).port
    assert port is not None
    statement = Lookup("select k.n from unnest(%s::bigint[]) k(n)")

    with silent_proxy(port) as proxy:

        async def ask() -> float:
            session = await _session(database_url.replace(f":{port}/", f":{proxy.port}/"))
            assert await session.fetch(statement, [[1]]) == [(1,)]
            proxy.fall_silent()
            begun = time.monotonic()
            with pytest.raises(Silent):
                await session.fetch(statement, [[1]])
            assert session.connection.closed
            return time.monotonic() - begun

        assert asyncio.run(ask()) < 0.5 + limits.ANSWER_GRACE_S + 5
        proxy.speak()


def test_a_session_that_ended_while_it_was_idle_is_noticed(database_url: str) -> None:
    statement = Lookup("select k.n from unnest(%s::bigint[]) k(n)")

    async def ask() -> None:
        session = await _session(database_url)
        await session.fetch(statement, [[1]])
        with psycopg.connect(database_url) as other:
            other.execute("select pg_terminate_backend(%s, 5000)", [session.connection.info.backend_pid])
        with pytest.raises(psycopg.OperationalError):
            await session.fetch(statement, [[1]])
        await session.connection.close()

    asyncio.run(ask())
