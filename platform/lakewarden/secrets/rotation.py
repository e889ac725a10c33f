"""Encrypts the secrets in the database with the first key of the ring; for `lakewarden secrets rotate`."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from lakewarden.prepared_statements import fetch
from lakewarden.secrets.interface import SecretUnreadable
from lakewarden.secrets.key_ring import KeyRing, Sealed

BATCH = 100
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Progress:
    """After a batch: how many secrets it encrypted anew, and why others could not be."""

    rotated: int
    unreadable: list[str]


def left(ring: KeyRing) -> int:
    """How many secrets are encrypted with another key than the first. Raises SecretsNotConfigured."""
    return int(fetch(_LEFT, [ring.writing])[0][0])


def rotate(ring: KeyRing) -> Iterator[Progress]:
    """Each batch is a transaction of its own, and what is done is not done again: it may be killed and repeated.

    Servers may go on, and other rotations. Raises SecretsNotConfigured.
    """
    last = _FIRST
    while True:
        with transaction.atomic():
            rows = fetch(_BATCH, {"key": ring.writing, "last": last, "batch": BATCH})
            if not rows:
                return
            unreadable: list[str] = []
            rotated = sum(_rotate_one(ring, reference, Sealed(*sealed), unreadable) for reference, *sealed in rows)
            last = rows[-1][0]
        yield Progress(rotated, unreadable)


def _rotate_one(ring: KeyRing, reference: UUID, before: Sealed, unreadable: list[str]) -> bool:
    try:
        after = ring.seal(reference, ring.open(reference, before))
    except SecretUnreadable as error:
        unreadable.append(str(error))
        return False
    values = {"id": reference, "key": after.key_id, "nonce": after.nonce, "ciphertext": after.ciphertext}
    return bool(fetch(_REPLACE, values))


_LEFT = "select count(*) from secret where key_id <> %s"
# locked, so that another rotation waits and then finds nothing to do
_BATCH = """
    select id, key_id, nonce, ciphertext from secret
    where key_id <> %(key)s and id > %(last)s order by id limit %(batch)s for update
"""
_REPLACE = """
    update secret set key_id = %(key)s, nonce = %(nonce)s, ciphertext = %(ciphertext)s where id = %(id)s returning 1
"""
