"""The pointer of a table or view to its newest metadata: loads the metadata, moves the pointer by compare-and-swap."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from catalog.documents import Document, inflated, metadata_of, pack, prefix_length, unpacked
from catalog.iceberg.tables import TableMetadata
from catalog.models import Tabular, occupied_locations
from catalog.services import limits, locations, metadata_files
from catalog.services.client_access import suffix_for_all
from catalog.services.commit_queue import COMMIT_QUEUE
from catalog.services.contracts import effective, gate
from catalog.services.contracts.combined import Combined
from catalog.services.contracts.proposals import Proposal
from catalog.services.document_cache import DOCUMENT_CACHE, Kept
from catalog.services.location_claims import Claim, in_namespace
from catalog.tabular_types import type_of
from lakewarden.authz.interface import Granted
from lakewarden.authz.model import Privilege
from lakewarden.context import Refused, RequestContext
from lakewarden.db_transaction import after_commit, changing
from lakewarden.errors import CommitFailed, Forbidden, LakewardenError, NotFound
from lakewarden.events.change_recording import Change, record
from tenants.services.warehouse_secrets import storage_of

OPTIMISTIC_ATTEMPTS = 3
VERIFIED_ATTEMPTS = 10
_TOO_MANY = "Cannot commit: too many commits at once, try again"


@dataclass(frozen=True, slots=True)
class Stored:
    """A table or view with its stored answer: `document` was packed with `tabular.metadata_location`.

    `unpacked` is the metadata's JSON if it is known already, `opened` a table's metadata, opened in that JSON.
    """

    tabular: Tabular
    document: Document
    unpacked: bytes | None = None
    opened: TableMetadata | None = None

    @property
    def metadata_length(self) -> int:
        return self.document.length - prefix_length(self.tabular.metadata_location)

    @property
    def metadata(self) -> bytes:
        return self.unpacked or metadata_of(self.document, self.tabular.metadata_location)

    @property
    def answer(self) -> bytes:
        """The document, not packed."""
        if self.unpacked is None:
            return inflated(self.document)
        return unpacked(self.tabular.metadata_location, self.unpacked)


@dataclass(frozen=True, slots=True)
class NewMetadata:
    """Metadata that is to become the state, written to `file`; `obsolete` files are removed after that.

    `opened` is a table's, opened in `encoded`.
    """

    uuid: str
    location: str
    encoded: bytes
    properties: dict[str, str]
    obsolete: tuple[str, ...] = ()
    file: str = ""
    opened: TableMetadata | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """One table's or view's part of a commit: `compute` returns the new state for a base, None if nothing changes.

    It raises ContractViolated for a change that data contracts do not allow. `propose` describes the change for their
    verifiers. `size` is that of the request in bytes, and bounds the time that `compute` takes. `rules` are only given
    for commits on the event loop: the ordinary path looks them up.
    """

    granted: Granted[Tabular]
    compute: Callable[[Stored, Combined | None], NewMetadata | None]
    propose: Callable[[Stored, NewMetadata], Proposal]
    event: str
    size: int
    rules: Combined | None = None


class _LostRace(CommitFailed):
    """Another commit moved a pointer first: everything of this attempt is rolled back."""


def load(granted: Granted[Tabular]) -> Stored:
    """The newest state; the row is read again with its document, so that both have the same version.

    Raises NotFound when the metadata file is missing, if the storage can tell without a request to a server.
    """
    stored = _read(granted.target, lock=False)
    file = stored.tabular.metadata_location
    if locations.is_known_missing(stored.tabular.namespace.warehouse, file):
        raise NotFound(f"Failed to open input stream for file: {file}: it is gone from the warehouse's storage")
    keep_recent(stored)
    return stored


def newest(tabular: Tabular) -> Stored:
    """As `load`, without a word about its file. Raises the kind's own 404 when it was dropped or renamed meanwhile."""
    return _read(tabular, lock=False)


def commit(one: Commit) -> Stored:
    """`commit_all` of one table or view."""
    with COMMIT_QUEUE.of(one.granted.target.id):
        return commit_all([one])[0]


def commit_all(commits: Sequence[Commit], *, also: Callable[[], None] = lambda: None) -> list[Stored]:
    """Replace all states, or none, in one transaction; `also` is part of it and may raise to undo it.

    After a lost race the commit is tried again, the last time with the rows locked, so that it succeeds if its
    requirements still hold. An error of a `compute` ends the commit at once. A commit about which verifiers are asked
    never locks rows while they answer: it has more attempts instead.
    """
    for attempt in range(VERIFIED_ATTEMPTS if _is_verified(commits) else OPTIMISTIC_ATTEMPTS):
        try:
            return _attempt(commits, [_read(one.granted.target, lock=False) for one in commits], also)
        except _LostRace:
            time.sleep(random.uniform(0, 0.01) * (attempt + 1))  # noqa: S311 spreads contenders, hides nothing
            for one in commits:
                effective.refresh(one.granted.target.namespace.warehouse)
    if _is_verified(commits):
        raise CommitFailed(_TOO_MANY)
    try:
        with changing():
            # always in the same order, so that two commits to the same rows never deadlock
            order = sorted(range(len(commits)), key=lambda index: commits[index].granted.target.id)
            locked = {index: _read(commits[index].granted.target, lock=True) for index in order}
            return _attempt(commits, [locked[index] for index in range(len(commits))], also)
    except _LostRace:
        raise CommitFailed(_TOO_MANY) from None


def _is_verified(commits: Sequence[Commit]) -> bool:
    rules = [effective.of_tabular(one.granted.target) for one in commits]
    return any(each is not None and each.verifiers for each in rules)


def _attempt(commits: Sequence[Commit], bases: Sequence[Stored], also: Callable[[], None]) -> list[Stored]:
    if not commits:
        with changing():
            also()
        return []
    written: list[str] = []
    results = list(bases)
    warehouse = bases[0].tabular.namespace.warehouse
    with metadata_files.discarding(warehouse, written):
        changes: list[tuple[int, NewMetadata, Document, Claim | None]] = []
        for index, (one, base) in enumerate(zip(commits, bases, strict=True)):
            rules = effective.of_tabular(one.granted.target)
            new = one.compute(base, rules)
            if new is not None:
                limits.check(new, base)
                if rules is not None and rules.verifiers:
                    gate.ask(one.propose(base, new), rules)
                # the row has the normal form, however the client writes the location: overlaps are found by comparing
                # texts
                new = replace(new, location=locations.inside(warehouse, new.location))
                claim = _move(one.granted, base.tabular, new.location)
                written.append(_write(base, new))
                new = replace(new, file=written[-1])
                changes.append((index, new, pack(new.file, new.encoded), claim))
        with changing():
            ordered = sorted(changes, key=lambda change: bases[change[0]].tabular.id)
            if any(claim for *_, claim in ordered):
                # rows before locations, as everywhere, so that two commits never deadlock
                for index, *_ in ordered:
                    lock_row(bases[index].tabular)
            for index, new, document, claim in ordered:
                one = commits[index]
                if claim is not None:
                    _take(claim, bases[index].tabular)
                results[index] = _swap(bases[index], new, document, one.granted.context, one.event)
                if obsolete := own_files(new.obsolete, results[index].tabular):
                    after_commit(partial(metadata_files.discard, warehouse, obsolete))
            also()
    return results


def _move(granted: Granted[Tabular], tabular: Tabular, location: str) -> Claim | None:
    """The claim of a commit that changes the location; None if it does not.

    Raises Forbidden for a caller who may not drop the object, because moving requires more than writing. Raises as
    `Claim.check`.
    """
    if location == tabular.location:
        return None
    if not granted.allows(type_of(tabular).actions.DROP):
        reason = f"Not allowed: changing the location of the {tabular.kind} requires the privilege {Privilege.MODIFY}"
        refused = Refused("set-location", tabular.kind, granted.ref.public_id, granted.chain[1].id, reason)
        granted.context.trail.refused = refused
        raise Forbidden(reason)
    claim = in_namespace(tabular.namespace, location, context=granted.context)
    claim.existing, claim.before = tabular.id, tabular.location
    claim.check()
    return claim


def _take(claim: Claim, tabular: Tabular) -> None:
    """The old location still belongs to the object, and is purged with it."""
    claim.take(tabular.id)
    occupied_locations.keep_earlier(
        tabular.warehouse_id, tabular.id, tabular.namespace_id, before=tabular.location, now=claim.location
    )


def own_files(files: Sequence[str], tabular: Tabular) -> list[str]:
    """The files inside the table's location: the log of a registered table may name files of other tables."""
    warehouse = tabular.namespace.warehouse
    return [file for file in files if locations.lies_in(warehouse, file, tabular.location)]


def _write(base: Stored, new: NewMetadata) -> str:
    tabular = base.tabular
    return metadata_files.write(
        tabular.namespace.warehouse, new.location, new.encoded, version=tabular.version, properties=new.properties
    )


def _swap(base: Stored, new: NewMetadata, document: Document, context: RequestContext, event: str) -> Stored:
    """Move the pointer from `base` to `new` in the caller's transaction.

    Raises _LostRace when another commit was first.
    """
    after = moved(base.tabular, new)
    if not Tabular.objects.move(base.tabular, after, document):
        raise _LostRace(f"Another commit changed {base.tabular} first")
    record(commit_of(event, base, after), context)
    stored = Stored(after, document)
    after_commit(partial(keep_recent, stored))
    return stored


def moved(tabular: Tabular, new: NewMetadata) -> Tabular:
    """The row after one more commit."""
    after = Tabular.__new__(Tabular)  # `copy` would pickle it, which takes ten times as long
    after.__dict__.update(tabular.__dict__)
    after.version = tabular.version + 1
    after.location, after.metadata_location = new.location, new.file
    return after


def keep_recent(stored: Stored) -> None:
    """Remember a committed state, for the reads that follow."""
    tabular = stored.tabular
    warehouse, is_missing = tabular.namespace.warehouse, None
    if warehouse.profile.SEES_MISSING_FILES:
        is_missing = partial(storage_of(warehouse).is_known_missing, tabular.metadata_location)
    DOCUMENT_CACHE.keep(tabular.id, Kept(tabular.version, stored.document, is_missing, suffix_for_all(tabular)))


def _read(known: Tabular, *, lock: bool) -> Stored:
    """Raises the kind's own 404 when it was dropped or renamed meanwhile."""
    if lock:
        lock_row(known)
    found = Tabular.objects.with_document(known.id, ask=partial(limits.hold_document, known.id))
    if found is None:
        raise gone(known)
    tabular, document = found
    if (tabular.namespace_id, tabular.name_key) != (known.namespace_id, known.name_key):
        raise gone(known)
    tabular.namespace = known.namespace
    return Stored(tabular, document)


def lock_row(tabular: Tabular) -> None:
    """Wait for other changes of the row. No join: it would return the newest version with an older document."""
    list(Tabular.everything.select_for_update().filter(id=tabular.id).values_list("id"))


def gone(tabular: Tabular) -> LakewardenError:
    return type_of(tabular).not_there(tabular)


def record_change(event: str, tabular: Tabular, context: RequestContext, **data: object) -> None:
    record(change_of(event, tabular, **data), context)


def _state(tabular: Tabular) -> dict[str, object]:
    if not tabular.metadata_location:  # a generic table: its files are its state
        return {"location": tabular.location}
    return {"metadata-location": tabular.metadata_location, "version": tabular.version}


def commit_of(event: str, base: Stored, after: Tabular) -> Change:
    """The audit entry and event of a commit, with both pointers."""
    return change_of(event, after, **{"previous-metadata-location": base.tabular.metadata_location})


def change_of(event: str, tabular: Tabular, **data: object) -> Change:
    """The audit entry and event of a change that led to `tabular`."""
    namespace = tabular.namespace
    plain = {
        "name": tabular.name,
        "namespace": namespace.path,
        "warehouse-id": str(namespace.warehouse_id),
        **_state(tabular),
        **data,
    }
    return Change(event, tabular.kind, str(tabular.uuid), namespace.warehouse.project_id, plain)
