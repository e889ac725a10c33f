"""Which OpenFGA store and which version of the model are in use; `lakewarden migrate` writes it."""

from dataclasses import dataclass

from django.utils import timezone

from lakewarden.authz.ledger.models import Grant, Membership, OpenFgaStore
from lakewarden.authz.openfga.client import OpenFga, Store, unavailable
from lakewarden.authz.openfga.language import authorization_model, model_hash
from lakewarden.config import OpenFgaConfig
from lakewarden.prepared_statements import fetch

_MIGRATE = "run `lakewarden migrate`"
_RECONCILE = "run `lakewarden openfga reconcile`"


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of the store, read in one query before each check."""

    store_id: str
    is_filled: bool
    is_pending: bool
    """Whether the log has changes that are not applied to OpenFGA, those of the open transaction included."""


def standing(settings: OpenFgaConfig) -> Standing | None:
    """The state of the configured store; None if it was never created."""
    rows = fetch(_STANDING, [settings.store])
    return Standing(*rows[0]) if rows else None


def migrated(settings: OpenFgaConfig) -> Store:
    """The store, even if it is not filled yet. Raises Unavailable unless its model is that of this version."""
    row = _row(settings)
    if row is None or row.model_hash != model_hash():
        raise unavailable(_problem(row) or _MIGRATE)
    return Store(row.store_id, row.model_id)


def current(settings: OpenFgaConfig) -> Store:
    """The store for checks. Raises Unavailable unless it is filled and its model is that of this version."""
    row = _row(settings)
    reason = _problem(row)
    if row is None or reason is not None:
        raise unavailable(reason or _MIGRATE)
    return Store(row.store_id, row.model_id)


def problem(settings: OpenFgaConfig) -> str | None:
    """Why this version cannot use the store, and the command that helps; None if it can. OpenFGA is not called."""
    return _problem(_row(settings))


def lost(settings: OpenFgaConfig) -> str | None:
    """Why OpenFGA itself does not have what the database says of it; None if it has. Raises Unavailable."""
    row = _row(settings)
    if row is None:
        return _problem(row)
    asked = _client(settings, row)
    try:
        is_there = asked.has_store() and asked.has_model(row.model_id)
    finally:
        asked.close()
    return None if is_there else f"it no longer has this installation's store or model: {_MIGRATE} first"


def _problem(row: OpenFgaStore | None) -> str | None:
    if row is None or not row.model_id:
        return f"the authorization model is not in it yet: {_MIGRATE} first"
    if row.model_hash != model_hash():
        return f"the authorization model in it is another version's: {_MIGRATE} first"
    if row.filled_at is None:
        return f"its store {row.name!r} does not have all rights of the database: {_RECONCILE} first"
    return None


def migrate(settings: OpenFgaConfig) -> list[str]:
    """Create the store if it is missing and write the model if it changed; returns a sentence for each step done.

    Raises Unavailable if OpenFGA cannot be reached, or has a store with the name that belongs to another installation.
    """
    done: list[str] = []
    row = _row(settings)
    if row is None or not _client(settings, row).has_store():
        row = OpenFgaStore(name=settings.store, store_id=_make(settings), model_id="", model_hash="", filled_at=None)
        # without grants and memberships there is nothing to copy, so the store counts as filled
        if not Grant.objects.exists() and not Membership.objects.exists():
            row.filled_at = timezone.now()
        row.save()
        done.append(f"The store {row.name!r} was created in OpenFGA")
    client = _client(settings, row)
    if row.model_hash != model_hash() or not client.has_model(row.model_id):
        row.model_id, row.model_hash = client.write_model(authorization_model()), model_hash()
        row.save(update_fields=["model_id", "model_hash"])
        done.append("The authorization model was written to OpenFGA")
    if row.filled_at is None:
        done.append(f"OpenFGA does not have all rights of the database yet: {_RECONCILE} next")
    return done


def mark_filled(settings: OpenFgaConfig) -> None:
    """Record that the store has everything that is in the ledger, except for what is in the log."""
    OpenFgaStore.objects.filter(name=settings.store).update(filled_at=timezone.now())


def _row(settings: OpenFgaConfig) -> OpenFgaStore | None:
    return OpenFgaStore.objects.filter(name=settings.store).first()


def _client(settings: OpenFgaConfig, row: OpenFgaStore) -> OpenFga:
    return OpenFga(settings, Store(row.store_id, row.model_id))


def _make(settings: OpenFgaConfig) -> str:
    client = OpenFga(settings)
    found = client.find_store(settings.store)
    if found is None:
        return client.create_store(settings.store)
    # a store without a model was left by an interrupted `migrate`; any other one has the rights of another installation
    if OpenFga(settings, Store(found)).has_models():
        raise unavailable(
            f"it has a store named {settings.store!r} that this database does not know: set "
            "LAKEWARDEN__OPENFGA__STORE to another name, or delete that store"
        )
    return found


_STANDING = """
    select store_id, filled_at is not null, (select 1 from authz_change order by sequence limit 1) is not null
    from openfga_store where name = %s
"""
