"""Moves the credentials of warehouses between the stores of secrets, and checks them; for `lakewarden secrets`."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from lakewarden import backends
from lakewarden.database import begin_request
from lakewarden.db_transaction import changing
from lakewarden.errors import CommitStateUnknown
from lakewarden.secrets.interface import SecretError, SecretMissing, SecretStore, SecretUnreadable
from tenants.models import Warehouse
from tenants.services import warehouse_secrets


@dataclass(frozen=True, slots=True)
class Unread:
    """A warehouse whose credential cannot be read, and why."""

    warehouse: str
    reason: str

    def __str__(self) -> str:
        return f"warehouse {self.warehouse}: {self.reason}"


def left(*, to_vault: bool) -> int:
    """How many warehouses have their credential in the other store. Raises SecretError."""
    _, before = backends.secret_stores(in_vault=to_vault)
    return sum(1 for _ in _in(before))


def move(*, to_vault: bool) -> Iterator[Unread | None]:
    """Move each credential into the store: put it there, switch the reference, delete the old one.

    Gives None for each that was moved. It may be killed at any time and repeated, and servers may go on. Raises
    SecretError when a store fails.
    """
    after, before = backends.secret_stores(in_vault=to_vault)
    for warehouse, reference in _in(before):
        begin_request()  # the commit of the one before says nothing about this one
        try:
            _move_one(warehouse, reference, before=before, after=after)
        except SecretMissing:
            continue  # the warehouse has another credential, or is gone
        except SecretUnreadable as error:
            yield Unread(_title(warehouse), str(error))
        else:
            yield None
    warehouse_secrets.forget_unused(before)


def unread() -> Iterator[Unread | None]:
    """Reads the credential of each warehouse that has one; gives None for each that can be read."""
    store = backends.secrets()
    for warehouse in _with_credential():
        assert warehouse.storage_secret is not None  # noqa: S101 as the query says
        try:
            store.get(warehouse.storage_secret)
        except SecretError as error:
            yield Unread(_title(warehouse), str(error))
        else:
            yield None


def try_out() -> None:
    """Put, read and delete a secret. Raises SecretError."""
    store, value = backends.secrets(), {"purpose": "lakewarden secrets check"}
    reference = store.put(value)
    try:
        if store.get(reference) != value:
            raise SecretUnreadable("What was read is not what was put")
    finally:
        store.delete(reference)


def _in(store: SecretStore) -> Iterator[tuple[Warehouse, UUID]]:
    there = {reference for reference, _ in store.references()}
    for warehouse in _with_credential():
        if warehouse.storage_secret in there:
            yield warehouse, warehouse.storage_secret


def _with_credential() -> list[Warehouse]:
    return list(Warehouse.objects.filter(storage_secret__isnull=False).order_by("id"))


def _move_one(warehouse: Warehouse, reference: UUID, *, before: SecretStore, after: SecretStore) -> None:
    moved = after.put(before.get(reference))
    try:
        with changing():
            # the same credential in another place: nothing that a user sees has changed, so there is no event
            is_moved = Warehouse.objects.filter(id=warehouse.id, storage_secret=reference).update(storage_secret=moved)
    except CommitStateUnknown:
        raise  # either may be in use: what is not is removed later
    except Exception:
        after.delete(moved)
        raise
    if is_moved:
        before.delete(reference)
    else:
        after.delete(moved)


def _title(warehouse: Warehouse) -> str:
    return f"{warehouse.name!r} ({warehouse.id})"
