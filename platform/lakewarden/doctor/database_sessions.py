"""Checks whether database sessions keep their settings (poolers, limits that the server refuses), and whether there may
be enough of them; for database.py.
"""

from lakewarden.config import Config
from lakewarden.doctor.findings import Finding, fail, ok, warn
from lakewarden.postgres import allowed_sessions, limits, pooler
from lakewarden.postgres.bounded import Bounded, begin


def examine(connection: Bounded, settings: Config) -> Finding:
    """`connection` must not have set any parameter yet. Raises psycopg.Error."""
    if pooler.lends_by_transaction(settings.database):
        return fail("sessions", pooler.SENTENCE, fix=pooler.REMEDY)
    way = (
        "there is a pooler in session mode in between"
        if pooler.is_pooled(connection)
        else "there is no pooler in between"
    )
    wanted = limits.Limits.of(settings.database)
    begin(connection, wanted)
    rows = connection.execute(_KEPT, [list(wanted.parameters())]).fetchall()
    kept: dict[str, str] = dict(rows)
    refused = [name for name, value in wanted.parameters().items() if name in kept and kept[name] != value]
    if refused:
        return warn(
            "sessions",
            f"{way}; PostgreSQL does not keep {', '.join(refused)}",
            fix="allow Lakewarden's role to set them, or set them for it: ALTER ROLE ... SET ...",
        )
    if few := allowed_sessions.shortage(connection, needed=allowed_sessions.needed_by_server(settings)):
        return warn("sessions", f"{few} by a server", fix=allowed_sessions.REMEDY)
    unknown = [name for name in wanted.parameters() if name not in kept]
    older = f" ({', '.join(unknown)} is of a newer PostgreSQL)" if unknown else ""
    return ok("sessions", f"{way}; time-outs are kept{older}")


_KEPT = "select name, setting from pg_settings where name = any(%s::text[])"
