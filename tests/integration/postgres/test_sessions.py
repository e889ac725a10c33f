"""What a session of the database is like: its limits, the network's time-outs, and the end of every wait."""

import asyncio
import socket
import time
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from django.db import connection
from pydantic import SecretStr

from lakewarden import config
from lakewarden.hot import connections
from lakewarden.postgres import history, limits, pooler
from lakewarden.postgres.bounded import Silent
from lakewarden.postgres.opening import open_async, open_one
from tests.servers.silent_proxy import silent_proxy

LIMITS = limits.Limits(5, 30, 15, 120)
BRIEF = limits.Limits(1, 0.5, 1, 1)
_SHOWN = "select name, setting from pg_settings where name = any(%s)"


def settings_of(url: str) -> config.DatabaseConfig:
    return config.current().database.model_copy(update={"url": SecretStr(url)})


def test_sessions_of_requests_have_their_limits(database: None) -> None:
    wanted = LIMITS.parameters()
    with connection.cursor() as cursor:
        cursor.execute(_SHOWN, [list(wanted)])
        assert dict(cursor.fetchall()) == wanted
    assert wanted["lock_timeout"] == "5000"


def test_hot_reads_have_them_too_and_need_no_start_up_parameter(database: None) -> None:
    async def shown() -> tuple[dict[str, str], int]:
        async with connections.session() as session:
            hot = session.connection
            rows = await (await hot.execute(_SHOWN, [["lock_timeout", "statement_timeout"]])).fetchall()
            assert "options" not in hot.info.get_parameters()
            return dict(rows), hot.fileno()

    async def once() -> dict[str, str]:
        found, _ = await shown()
        await connections.close_all()
        return found

    assert asyncio.run(once()) == {"lock_timeout": "5000", "statement_timeout": "10000"}


def test_the_network_is_probed_by_both_sides(database_url: str) -> None:
    with closing(open_one(settings_of(database_url), LIMITS, name="probe")) as opened:
        duplicate = socket.socket(fileno=opened.pgconn.socket)
        try:
            assert duplicate.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
            assert duplicate.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 5
            assert duplicate.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
        finally:
            duplicate.detach()
        assert opened.execute("show tcp_keepalives_idle").fetchone() == ("10",)


def test_who_waits_for_a_silent_database_hangs_up(database_url: str) -> None:
    port = urlsplit(database_url).port
    assert port is not None
    with silent_proxy(port) as proxy:
        through = settings_of(database_url.replace(f":{port}/", f":{proxy.port}/"))
        with closing(open_one(through, BRIEF, name="probe")) as opened:
            proxy.fall_silent()
            begun = time.monotonic()
            with pytest.raises(Silent):
                opened.execute("select 1")
            assert time.monotonic() - begun < 0.5 + limits.ANSWER_GRACE_S + 5
            assert opened.closed
            proxy.speak()

        async def ask() -> None:
            opened = await open_async(through, BRIEF, name="probe")
            proxy.fall_silent()
            with pytest.raises(Silent):
                await opened.execute("select 1")
            assert opened.closed

        asyncio.run(ask())
        proxy.speak()


def test_names_of_prepared_statements_are_no_other_connections(database_url: str) -> None:
    names = set()
    for _ in range(20):
        with closing(open_one(settings_of(database_url), LIMITS, name="probe")) as opened:
            opened.execute("select 1", prepare=True)
            names.update(opened.execute("select name from pg_prepared_statements").fetchall())
    assert len(names) == 20


def test_an_address_without_a_pooler_is_known(database_url: str) -> None:
    assert not pooler.lends_by_transaction(settings_of(database_url))
    with closing(open_one(settings_of(database_url), LIMITS, name="probe")) as opened:
        assert not pooler.is_pooled(opened)


def test_a_role_that_is_not_told_of_the_cluster_is_still_told_one_database_from_another(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[history.Told] = []
    monkeypatch.setattr(history, "seen", seen.append)
    with closing(open_one(settings_of(database_url), LIMITS, name="owner")) as owner:
        owner.execute("revoke execute on function pg_control_system() from public")
        owner.execute("drop role if exists told_little")
        owner.execute("create role told_little login password 'little'")
        try:
            settings = settings_of(f"{database_url}?user=told_little&password=little")
            with closing(open_one(settings, LIMITS, name="little")) as session:
                assert session.execute("select current_user").fetchone() == ("told_little",)
        finally:
            owner.execute("grant execute on function pg_control_system() to public")
            owner.execute("drop role told_little")
    whole, little = seen
    assert len(whole[2]) == 8
    assert little == ("", whole[1], "")
