"""The pointer of a table or view: its newest metadata is loaded, and moved by compare-and-swap."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from catalog.documents import Document, metadata_of, pack
from catalog.models import Tabular, TabularDocument
from catalog.services import locations, metadata_files
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from lakewarden.errors import CommitFailed, LakewardenError, NoSuchTable, NoSuchView
from lakewarden.events.changes import Change, record
from lakewarden.transactions import changing

OPTIMISTIC_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Stored:
    """A table or view with its answer: `tabular.metadata_location` is what `document` was packed with."""

    tabular: Tabular
    document: Document

    @property
    def metadata(self) -> bytes:
        return metadata_of(self.document, self.tabular.metadata_location)


@dataclass(frozen=True, slots=True)
class NewMetadata:
    """Metadata that has been computed and shall become the state; `obsolete` files are removed once it is."""

    uuid: str
    location: str
    encoded: bytes
    properties: dict[str, str]
    obsolete: tuple[str, ...] = ()


def load(granted: Granted[Tabular]) -> Stored:
    """The newest state; the row is read again with its document, so that both are of one version."""
    return _read(granted.target, lock=False)


def commit(granted: Granted[Tabular], compute: Callable[[Stored], NewMetadata | None], *, event: str) -> Stored:
    """Replace the state by what `compute` makes of it; None from it means no change, and keeps the file.

    A race lost to another commit is tried again here, at last with the row locked, so that one whose requirements
    still hold gets through. What `compute` raises ends the commit at once.
    """
    stored = load(granted)
    for attempt in range(OPTIMISTIC_ATTEMPTS):
        done = _attempt(stored, compute, granted.context, event)
        if done is not None:
            return done
        time.sleep(random.uniform(0, 0.01) * (attempt + 1))  # noqa: S311 spreads contenders, hides nothing
        stored = _read(stored.tabular, lock=False)
    with changing():
        done = _attempt(_read(stored.tabular, lock=True), compute, granted.context, event)
    if done is None:
        raise CommitFailed(f"Cannot commit to {granted.target}: too many commits at once, try again")
    return done


def _attempt(
    base: Stored, compute: Callable[[Stored], NewMetadata | None], context: RequestContext, event: str
) -> Stored | None:
    new = compute(base)
    if new is None:
        return base
    tabular = base.tabular
    warehouse = tabular.namespace.warehouse
    locations.inside(warehouse, new.location)
    written = metadata_files.write(
        warehouse, new.location, new.encoded, version=tabular.version, properties=new.properties
    )
    with metadata_files.discarding(warehouse, written), changing():
        done = _swap(base, new, written, context, event)
        if done is not None and new.obsolete:
            transaction.on_commit(partial(metadata_files.discard, warehouse, new.obsolete))
    if done is None:
        metadata_files.discard(warehouse, (written,))
    return done


def _swap(base: Stored, new: NewMetadata, written: str, context: RequestContext, event: str) -> Stored | None:
    """Move the pointer from `base` to `new`, part of a transaction; None when somebody else was first."""
    tabular = base.tabular
    if new.location != tabular.location:
        locations.ensure_apart(tabular.namespace.warehouse, new.location, exclusive=True, but=tabular.id)
    moved = (
        Tabular.objects.live()
        .filter(id=tabular.id, version=tabular.version)
        .update(
            version=F("version") + 1,
            uuid=UUID(new.uuid),
            location=new.location,
            metadata_location=written,
            updated_at=timezone.now(),
        )
    )
    if not moved:
        return None
    document = pack(written, new.encoded)
    TabularDocument.objects.filter(tabular_id=tabular.id).update(
        version=tabular.version + 1, content=document.content, crc=document.crc, length=document.length
    )
    after = Tabular.objects.select_related("namespace__warehouse").get(id=tabular.id)
    record_change(event, after, context)
    return Stored(after, document)


def _read(known: Tabular, *, lock: bool) -> Stored:
    """Raises the kind's own 404 when it is gone, or is under another name meanwhile."""
    rows = TabularDocument.objects.select_related("tabular").filter(tabular_id=known.id, tabular__deleted_at=None)
    found = (rows.select_for_update() if lock else rows).first()
    if found is None or (found.tabular.namespace_id, found.tabular.name_key) != (known.namespace_id, known.name_key):
        raise gone(known)
    tabular = found.tabular
    tabular.namespace = known.namespace
    return Stored(tabular, Document(bytes(found.content), found.crc, found.length))


def gone(tabular: Tabular) -> LakewardenError:
    if tabular.kind == Tabular.Kind.TABLE:
        return NoSuchTable(f"Table does not exist: {tabular}")
    return NoSuchView(f"View does not exist: {tabular}")


def record_change(event: str, tabular: Tabular, context: RequestContext, **data: object) -> None:
    namespace = tabular.namespace
    plain = {
        "name": tabular.name,
        "namespace": namespace.path,
        "warehouse-id": str(namespace.warehouse_id),
        "metadata-location": tabular.metadata_location,
        "version": tabular.version,
        **data,
    }
    record(Change(event, tabular.kind, str(tabular.id), namespace.warehouse.project_id, plain), context)
