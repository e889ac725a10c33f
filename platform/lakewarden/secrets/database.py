"""Keeps secrets in the database, encrypted with the keys of the configuration."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from django.db import connection

from lakewarden.ids import new_id
from lakewarden.prepared_statements import execute, fetch
from lakewarden.secrets.interface import SecretMissing, SecretUnreadable
from lakewarden.secrets.key_ring import KeyRing, Sealed

_PAGE = 1000
_FIRST = UUID(int=0)


class DatabaseStore:
    """A put is part of the open transaction, if there is one. Failures of the database are Django's errors."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    def put(self, value: Mapping[str, str]) -> UUID:
        reference = new_id()
        sealed = self._ring.seal(reference, json.dumps(dict(value)).encode())
        execute(_PUT, [reference, sealed.key_id, sealed.nonce, sealed.ciphertext])
        return reference

    def get(self, reference: UUID) -> dict[str, str]:
        with _own_connection():
            rows = fetch(_GET, [reference])
        if not rows:
            raise SecretMissing(f"The database does not have the secret {reference}")
        return dict(json.loads(self._ring.open(reference, Sealed(*rows[0]))))

    def delete(self, reference: UUID) -> None:
        execute(_DELETE, [reference])

    def references(self) -> Iterator[tuple[UUID, datetime]]:
        last = _FIRST
        while rows := fetch(_REFERENCES, [last, _PAGE]):
            yield from rows
            last = rows[-1][0]

    def unreadable(self) -> Iterator[tuple[UUID, str]]:
        """The secrets that cannot be read with the configured keys, and why."""
        for reference, _ in self.references():
            try:
                self.get(reference)
            except SecretMissing:
                continue  # it was deleted meanwhile
            except SecretUnreadable as error:
                yield reference, str(error)

    def problem(self) -> str | None:
        """Why one of the kept secrets cannot be read, of those of each key one; None: they can."""
        for (reference,) in fetch(_ONE_OF_EACH_KEY, []):
            try:
                self.get(reference)
            except SecretMissing:
                continue  # it was deleted meanwhile
            except SecretUnreadable as error:
                return str(error)
        return None


def installation() -> UUID:
    """The id of this installation, made when it is asked for first."""
    with _own_connection():
        execute(_NAME_INSTALLATION, [new_id()])
        return UUID(str(fetch(_INSTALLATION, [])[0][0]))


@contextmanager
def _own_connection() -> Iterator[None]:
    """Leave a thread that had no connection without one: those that write files are many, and seldom need one."""
    had_one = connection.connection is not None
    try:
        yield
    finally:
        if not had_one:
            connection.close()


_PUT = "insert into secret (id, key_id, nonce, ciphertext, created_at) values (%s, %s, %s, %s, now())"
_GET = "select key_id, nonce, ciphertext from secret where id = %s"
_DELETE = "delete from secret where id = %s"
_REFERENCES = "select id, created_at from secret where id > %s order by id limit %s"
_ONE_OF_EACH_KEY = "select distinct on (key_id) id from secret order by key_id, id"
_NAME_INSTALLATION = "insert into installation (is_this, id) values (true, %s) on conflict do nothing"
_INSTALLATION = "select id from installation"
