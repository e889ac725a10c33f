"""Checks whether database sessions keep their settings: poolers, and limits that the server
refuses; for database.py.
"""

from lakewarden.config import DatabaseConfig
from lakewarden.doctor.findings import Finding, fail, ok, warn
from lakewarden.postgres import limits, pooler
from lakewarden.postgres.bounded import Bounded, begin


def examine(connection: Bounded, settings: DatabaseConfig) -> Finding:
    """`connection` must not have set any parameter yet. Raises psycopg.Error."""
    if pooler.lends_by_transaction(settings):
        return fail("sessions", pooler.SENTENCE, fix=pooler.REMEDY)
    way = (
        "there is a pooler in session mode in between"
        if pooler.is_pooled(connection)
        else "there is no pooler in between"
    )
    wanted = limits.Limits.of(settings)
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
    unknown = [name for name in wanted.parameters() if name not in kept]
    older = f" ({', '.join(unknown)} is of a newer PostgreSQL)" if unknown else ""
    return ok("sessions", f"{way}; time-outs are kept{older}")


_KEPT = "select name, setting from pg_settings where name = any(%s::text[])"
