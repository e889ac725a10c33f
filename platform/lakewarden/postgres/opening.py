"""Opens connections with the configured address, network time-outs and limits."""

from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn, Ping

from lakewarden.config import DatabaseConfig
from lakewarden.postgres.bounded import AsyncBounded, Bounded, begin, begin_async
from lakewarden.postgres.limits import Limits


def parameters(settings: DatabaseConfig, name: str | None = None) -> dict[str, Any]:
    """The parameters of libpq: address, name of the application, and how to notice that the other side has vanished.

    The address may name several servers; the one that takes changes is meant, as a standby would answer with what was
    true some time ago. The address can say otherwise; a `name` is the application's whatever the address says.
    """
    assert settings.url is not None  # noqa: S101 nothing starts without
    return {
        "application_name": "lakewarden",
        "target_session_attrs": "read-write",
        "connect_timeout": settings.connect_timeout_s,
        "keepalives_idle": settings.keepalive_idle_s,
        "keepalives_interval": settings.keepalive_interval_s,
        "keepalives_count": settings.keepalive_count,
        "tcp_user_timeout": settings.tcp_user_timeout_s * 1000,
        **conninfo_to_dict(settings.url.get_secret_value()),
        **({} if name is None else {"application_name": name}),
    }


def open_one(settings: DatabaseConfig, limits: Limits, *, name: str) -> Bounded:
    """Open a connection in autocommit mode; `name` is its application_name. Raises psycopg.Error."""
    connection = Bounded.connect(**parameters(settings, name), autocommit=True)
    try:
        begin(connection, limits)
    except BaseException:
        connection.close()
        raise
    return connection


def open_plain(settings: DatabaseConfig) -> Bounded:
    """Open a connection without setting parameters: a pooler could pass the session with them to another client."""
    connection = Bounded.connect(**parameters(settings), autocommit=True)
    connection.patience_s = float(settings.connect_timeout_s)
    return connection


def accepts_connections(settings: DatabaseConfig) -> bool:
    """Whether a database server answers at the address and is not starting or stopping; needs no password."""
    return PGconn.ping(make_conninfo(**parameters(settings)).encode()) == Ping.OK


async def open_async(settings: DatabaseConfig, limits: Limits, *, name: str) -> AsyncBounded:
    connection = await AsyncBounded.connect(**parameters(settings, name), autocommit=True, prepare_threshold=1)
    try:
        await begin_async(connection, limits)
    except BaseException:
        await connection.close()
        raise
    return connection
