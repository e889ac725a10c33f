"""Which store and which version of the model are in use: written by `lakewarden migrate`, read by whoever asks."""

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
    """How things are, for one question: one query."""

    store_id: str
    is_filled: bool
    is_pending: bool
    """Whether a change is committed (or made by the open transaction) that OpenFGA has not heard of."""


def standing(settings: OpenFgaConfig) -> Standing | None:
    """None when there is no store yet."""
    rows = fetch(_STANDING, [settings.store])
    return Standing(*rows[0]) if rows else None


def migrated(settings: OpenFgaConfig) -> Store:
    """The store, whether or not it has all rights. Raises Unavailable unless its model is this version's."""
    row = _row(settings)
    if row is None or row.model_hash != model_hash():
        raise unavailable(_problem(row) or _MIGRATE)
    return Store(row.store_id, row.model_id)


def current(settings: OpenFgaConfig) -> Store:
    """The store to ask. Raises Unavailable when it is not ready for this version."""
    row = _row(settings)
    reason = _problem(row)
    if row is None or reason is not None:
        raise unavailable(reason or _MIGRATE)
    return Store(row.store_id, row.model_id)


def problem(settings: OpenFgaConfig) -> str | None:
    """Why this version cannot be served with what is in OpenFGA, and the command that helps; OpenFGA is not asked."""
    return _problem(_row(settings))


def _problem(row: OpenFgaStore | None) -> str | None:
    if row is None or not row.model_id:
        return f"the authorization model is not in it yet: {_MIGRATE} first"
    if row.model_hash != model_hash():
        return f"the authorization model in it is another version's: {_MIGRATE} first"
    if row.filled_at is None:
        return f"its store {row.name!r} does not have all rights of the database: {_RECONCILE} first"
    return None


def migrate(settings: OpenFgaConfig) -> list[str]:
    """Make the store if it is missing, write the model if it is another; returns what was done, a sentence each.

    Raises Unavailable when OpenFGA cannot be reached, or has a store of the name that is somebody else's.
    """
    done: list[str] = []
    row = _row(settings)
    if row is None or not _client(settings, row).has_store():
        row = OpenFgaStore(name=settings.store, store_id=_make(settings), model_id="", model_hash="", filled_at=None)
        # nothing is granted yet: there is nothing to bring over
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
    """Say that the store has everything that the ledger has, and the log the rest."""
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
    # one without a model was left by a `migrate` that was killed; any other has rights of another installation
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
