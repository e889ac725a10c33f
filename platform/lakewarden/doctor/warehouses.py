"""Checks that each warehouse's storage can be written and read; for database.py."""

from collections.abc import Iterator
from uuid import UUID

import psycopg

from lakewarden import backends
from lakewarden.doctor.findings import Finding, fail, ok, warn
from lakewarden.errors import BadRequest
from lakewarden.storage.interface import StorageError
from lakewarden.storage.probe import Probe
from lakewarden.storage.profiles import parse_profile

EXAMINED = 25
"""The number of newest warehouses that are checked: with all of them, the command could take minutes."""


def examine(connection: psycopg.Connection) -> Iterator[Finding]:
    rows = connection.execute(
        "select id, name, storage_profile, storage_secret from warehouse where status = 'active' "
        "order by id desc limit %s",
        [EXAMINED + 1],
    ).fetchall()
    for identifier, name, profile, secret in rows[:EXAMINED]:
        yield examine_one(identifier, name=name, profile=profile, secret=secret)
    if len(rows) > EXAMINED:
        yield warn(
            "warehouses", f"only the newest {EXAMINED} were tried", fix="check the storage of the others yourself"
        )


def examine_one(identifier: UUID, *, name: str, profile: object, secret: UUID | None) -> Finding:
    """Write, read and remove a small file at the warehouse's location."""
    title = f"warehouse {name!r} ({identifier})"
    try:
        parsed = parse_profile(profile)
        probe = Probe(backends.storage_of(parsed, secret), parsed.location)
        try:
            probe.write_and_read()
        finally:
            probe.clean_up(folders=False)
    except (StorageError, BadRequest) as error:
        return fail(
            title, f"its storage cannot be used: {error}", fix="repair the storage: tables in it cannot be changed now"
        )
    return ok(title, f"{parsed.location} can be written and read")
