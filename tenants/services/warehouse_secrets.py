"""The life of a warehouse's credential in the secret store: put first, referred to in the transaction, deleted last.

Whoever creates a warehouse, or gives it another credential:

    with warehouse_secrets.kept(credential) as kept, changing():
        warehouse = warehouse_states.locked(granted)
        warehouse_secrets.release(warehouse.storage_secret)  # whoever deletes a warehouse does this, too
        warehouse.storage_secret = kept.reference
        warehouse.save(...)
        record(...)  # never the credential

A crash at any step leaves a secret that nothing refers to, which `forget_unused` removes an hour later, and never a
warehouse without its secret.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final
from uuid import UUID

from lakewarden import backends
from lakewarden.db_transaction import after_commit
from lakewarden.errors import BadRequest, CommitStateUnknown, Unavailable
from lakewarden.secrets.interface import SecretError, SecretsNotConfigured, SecretStore
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import CredentialMissing, Storage
from tenants.models import Warehouse

logger = logging.getLogger(__name__)

UNUSED_AFTER: Final = timedelta(hours=1)
_USED_WITHIN_S: Final = UNUSED_AFTER.total_seconds() / 2
_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Kept:
    """A credential in the secret store that nothing refers to yet."""

    _reference: UUID | None
    _since: float = field(default_factory=time.time)

    @property
    def reference(self) -> UUID | None:
        """For `Warehouse.storage_secret`; None: there is no credential. Ask for it in the transaction.

        Raises Unavailable if so much time has passed that `forget_unused` may remove it before the commit.
        """
        if time.time() - self._since > _USED_WITHIN_S:
            raise Unavailable("The storage credential was not used in time, nothing was changed: try again")
        return self._reference


@contextmanager
def kept(credential: StorageCredential | None) -> Iterator[Kept]:
    """Put the credential into the secret store, and delete it again if the body certainly changed nothing.

    Raises BadRequest if the server is not configured to keep secrets, Unavailable if the secret store fails.
    """
    if credential is None:
        yield Kept(None)
        return
    reference = _put(credential)
    try:
        yield Kept(reference)
    except CommitStateUnknown:
        raise
    except Exception:
        _delete(reference)
        raise


def release(reference: UUID | None) -> None:
    """Delete the secret when the open transaction, which removes the last use of it, is committed."""
    if reference is not None:
        after_commit(partial(_delete, reference))


def storage_of(warehouse: Warehouse) -> Storage:
    """The warehouse's opened storage. Raises StorageUnavailable if its credential cannot be read."""
    try:
        return backends.storage_of(warehouse.profile, warehouse.storage_secret)
    except CredentialMissing:
        # the row was read before another request gave the warehouse a new credential
        now = Warehouse.objects.find(warehouse.id)
        if now is None or now.storage_secret == warehouse.storage_secret:
            raise
        return backends.storage_of(now.profile, now.storage_secret)


def forget_unused(store: SecretStore | None = None) -> int:
    """Delete the secrets that no warehouse refers to, as a crash leaves them; returns how many. Raises SecretError."""
    before, forgotten = datetime.now(UTC) - UNUSED_AFTER, 0
    store = store or backends.secrets()
    old = (reference for reference, at in store.references() if at < before)
    while batch := list(islice(old, _AT_ONCE)):
        used = set(Warehouse.objects.filter(storage_secret__in=batch).values_list("storage_secret", flat=True))
        for reference in set(batch) - used:
            store.delete(reference)
            forgotten += 1
    return forgotten


def _put(credential: StorageCredential) -> UUID:
    try:
        return backends.secrets().put(credential.dump())
    except SecretsNotConfigured as error:
        raise BadRequest(f"storage-credential: it cannot be kept. {error}") from error
    except SecretError as error:
        raise Unavailable(
            f"The storage credential could not be kept, nothing was changed: {error}", retry_after_s=5
        ) from error


def _delete(reference: UUID) -> None:
    try:
        backends.secrets().delete(reference)
    except SecretError as error:
        logger.warning("The secret %s is not used any more, and is deleted later: %s", reference, error)
