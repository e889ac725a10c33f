"""Checks the keys of secrets in the database, and Vault if it is configured; for database.py."""

from collections.abc import Iterator
from uuid import UUID

import psycopg

from lakewarden.config import SecretsConfig
from lakewarden.doctor.findings import Finding, fail, ok, warn
from lakewarden.secrets.interface import SecretError, SecretMissing, SecretUnreadable
from lakewarden.secrets.key_ring import KeyRing, Sealed

_KEYS = (
    "set LAKEWARDEN__SECRETS__KEYS_FILE (or …__KEYS) to all keys in use; `lakewarden secrets new-key` prints a new one"
)


def examine(connection: psycopg.Connection, settings: SecretsConfig) -> Iterator[Finding]:
    yield from _keys(connection, settings)
    if settings.vault.url is not None:
        yield _vault(connection, settings)


def _keys(connection: psycopg.Connection, settings: SecretsConfig) -> Iterator[Finding]:
    try:
        ring = KeyRing.read(settings)
    except SecretError as error:
        yield fail("secrets", str(error), fix=_KEYS)
        return
    rows = connection.execute(
        "select distinct on (key_id) id, key_id, nonce, ciphertext from secret order by key_id, id"
    ).fetchall()
    for reference, *sealed in rows:
        try:
            ring.open(reference, Sealed(*sealed))
        except SecretUnreadable as error:
            yield fail("secrets", str(error), fix=_KEYS)
            return
    if settings.in_vault:
        return
    if not ring:
        yield warn("secrets", "there is no key, so no warehouse with a credential can be created", fix=_KEYS)
    elif others := sorted({key_id for _, key_id, *_ in rows} - {ring.writing}):
        names = ", ".join(map(repr, others))
        yield warn(
            "secrets",
            f"some are encrypted with older keys ({names})",
            fix="run `lakewarden secrets rotate`, then remove them",
        )
    else:
        yield ok("secrets", f"are encrypted with the key {ring.writing!r}")


def _vault(connection: psycopg.Connection, settings: SecretsConfig) -> Finding:
    from lakewarden.secrets.vault import VaultStore  # noqa: PLC0415 its client takes time to load

    row = connection.execute("select id from installation").fetchone()
    store = VaultStore(settings.vault, installation=lambda: row[0] if row else UUID(int=0))
    try:
        store.get(UUID(int=0))
    except SecretMissing:
        return ok("Vault", f"{settings.vault.url} answers, and the login by {settings.vault.auth} may read secrets")
    except SecretError as error:
        return fail(
            "Vault",
            str(error),
            fix="mend it, or correct LAKEWARDEN__SECRETS__VAULT__…; then `lakewarden secrets check`",
        )
    return fail("Vault", "it has a secret that nobody has put", fix="report this as a defect of Lakewarden")
