"""Opens connections: one address, one set of network time-outs and one set of limits for all that this process has."""

from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn, Ping

from lakewarden.config import DatabaseConfig
from lakewarden.postgres.bounded import AsyncBounded, Bounded, begin, begin_async
from lakewarden.postgres.limits import Limits


def network(settings: DatabaseConfig) -> dict[str, Any]:
    """What libpq needs to notice a peer that is gone."""
    return {
        "connect_timeout": settings.connect_timeout_s,
        "keepalives_idle": settings.keepalive_idle_s,
        "keepalives_interval": settings.keepalive_interval_s,
        "keepalives_count": settings.keepalive_count,
        "tcp_user_timeout": settings.tcp_user_timeout_s * 1000,
    }


def open_one(settings: DatabaseConfig, limits: Limits, *, name: str) -> Bounded:
    """A connection in autocommit mode, `name` being what the database shows of it. Raises psycopg.Error."""
    connection = Bounded.connect(**_parameters(settings, name), autocommit=True)
    try:
        begin(connection, limits)
    except BaseException:
        connection.close()
        raise
    return connection


def open_plain(settings: DatabaseConfig) -> Bounded:
    """A connection that sets nothing for itself: a pooler would hand it on."""
    connection = Bounded.connect(**_parameters(settings, "lakewarden"), autocommit=True)
    connection.patience_s = float(settings.connect_timeout_s)
    return connection


def accepts_connections(settings: DatabaseConfig) -> bool:
    """Whether a database server answers at the address and is not starting or stopping; asks without a password."""
    return PGconn.ping(make_conninfo(**_parameters(settings, "lakewarden")).encode()) == Ping.OK


async def open_async(settings: DatabaseConfig, limits: Limits, *, name: str) -> AsyncBounded:
    connection = await AsyncBounded.connect(**_parameters(settings, name), autocommit=True, prepare_threshold=1)
    try:
        await begin_async(connection, limits)
    except BaseException:
        await connection.close()
        raise
    return connection


def _parameters(settings: DatabaseConfig, name: str) -> dict[str, Any]:
    assert settings.url is not None  # noqa: S101 nothing starts without
    return {**network(settings), **conninfo_to_dict(settings.url.get_secret_value()), "application_name": name}
