"""Tables: create, stage, load, commit, register. What they share with views is in `tabulars`."""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from catalog.iceberg import tables as engine
from catalog.models import Namespace, Tabular
from catalog.services import (
    commit_limits,
    data_paths,
    location_claims,
    locations,
    metadata_files,
    pointer,
    staged_creations,
    tabulars,
)
from catalog.services.contracts import effective, gate
from catalog.services.contracts.combined import Combined
from catalog.services.contracts.proposals import Proposal
from catalog.services.location_claims import Claim
from catalog.services.pointer import NewMetadata, Stored
from lakewarden.authz.interface import Granted
from lakewarden.errors import CommitFailed
from lakewarden.ids import new_id
from tenants.models import Warehouse

_TABLE = Tabular.Kind.TABLE


class CreateTable(msgspec.Struct, rename="kebab"):
    """The members of a create request that the catalog itself reads; the engine reads the rest."""

    name: str
    location: str | None = None
    stage_create: bool = False


class CommitTable(msgspec.Struct):
    requirements: list[msgspec.Raw]
    updates: list[msgspec.Raw]


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return int(datetime.now(UTC).timestamp() * 1000)


class Planned(NamedTuple):
    """A table as it would be; nothing of it is stored yet."""

    namespace: Granted[Namespace]
    name: str
    uuid: UUID
    metadata: engine.TableMetadata
    claim: Claim

    @property
    def location(self) -> str:
        """In the normal form."""
        return self.claim.location


def create(planned: Planned) -> Stored:
    """Raises AlreadyExists for a taken name or an overlapping location, InvalidArgument for one that is not empty."""
    return tabulars.insert(_creation(planned.namespace, planned.name, planned.metadata, claim=planned.claim))


def stage(planned: Planned) -> bytes:
    """The metadata that `create` would store; the location is reserved for the commit that follows.

    Raises as `create`, and Conflict when the caller has too many staged creations in the namespace.
    """
    staged_creations.reserve(planned.namespace, planned.claim, planned.uuid)
    locations.make_folders(planned.namespace.target.warehouse, planned.location)
    return planned.metadata.encode()


def plan(namespace: Granted[Namespace], request: CreateTable, body: bytes) -> Planned:
    """The table that the whole request `body` describes, for `create` or `stage`.

    Raises AlreadyExists for a taken name, InvalidArgument for a location outside the warehouse, ValidationFailed for a
    format version that the warehouse does not allow, and whatever is wrong with the schema, spec or order.
    """
    target = namespace.target
    tabulars.check_free(target, request.name, _TABLE)
    uuid = new_id()
    location = locations.default_location(target, request.name, uuid) if request.location is None else request.location
    claim = location_claims.in_namespace(
        target,
        locations.inside(target.warehouse, location),
        context=namespace.context,
        generated=request.location is None and target.warehouse.profile.layout.has_own_tabulars,
    )
    metadata = first_metadata(target, body, uuid=uuid, location=location)
    data_paths.check(target.warehouse, claim.location, metadata.properties, before={})
    _judge(namespace, request.name, metadata)
    return Planned(namespace, request.name, uuid, metadata, claim)


def _judge(namespace: Granted[Namespace], name: str, metadata: engine.TableMetadata) -> None:
    """Raises ContractViolated for a new table that the data contracts do not allow, Unavailable as verifiers do."""
    gate.check_creation(creation(namespace, name, metadata))


def creation(namespace: Granted[Namespace], name: str, metadata: engine.TableMetadata) -> Proposal:
    """What the data contracts judge of a new table."""
    return Proposal("create", gate.about_new(namespace, name, _TABLE), None, metadata, namespace.context)


def first_metadata(namespace: Namespace, body: bytes, *, uuid: UUID, location: str) -> engine.TableMetadata:
    """The metadata that a creation in the namespace requests; raises as `plan`."""
    policy = namespace.warehouse.format_policy
    metadata = engine.create(
        body, uuid=str(uuid), location=location, now_ms=now_ms(), default_version=policy.for_new_tables
    )
    policy.ensure_allowed(metadata.format_version)
    return metadata


def create_by_commit(namespace: Granted[Namespace], name: str, commit: CommitTable) -> Stored:
    """Complete a staged creation (requirement `assert-create`).

    Raises CommitFailed when a table has the name meanwhile, AlreadyExists when a view has it or the location belongs to
    another object, InvalidArgument for a location that is not empty and was not staged by the caller.
    """
    ready = written_by_commit(namespace, name, commit)
    with metadata_files.discarding(ready.warehouse, [ready.new.file]):
        return add_by_commit(ready)


def written_by_commit(namespace: Granted[Namespace], name: str, commit: CommitTable) -> tabulars.Creation:
    """The first half of `create_by_commit`: writes the metadata file, which the caller must discard on failure."""
    commit_limits.check_commit(commit.requirements, commit.updates)
    policy = namespace.target.warehouse.format_policy
    uuid = new_id()
    metadata = _built_by_commit(namespace.target, commit, uuid=uuid)
    policy.ensure_allowed(metadata.format_version)
    location = locations.inside(namespace.target.warehouse, metadata.location)
    if metadata.uuid == str(uuid):  # the commit assigns none: it is that of the staged answer, if there was one
        staged = staged_creations.uuid_at(namespace, location)
        metadata = _built_by_commit(namespace.target, commit, uuid=staged) if staged else metadata
    data_paths.check(namespace.target.warehouse, location, metadata.properties, before={})
    claim = location_claims.in_namespace(namespace.target, location, context=namespace.context)
    claim.uuid = UUID(metadata.uuid)
    with _name_required(namespace, name):
        tabulars.check_free(namespace.target, name, _TABLE)
        tabulars.check_uuid_free(namespace, metadata.uuid, what=_TABLE)
        _judge(namespace, name, metadata)
        return tabulars.write(_creation(namespace, name, metadata, claim=claim))


def _built_by_commit(namespace: Namespace, commit: CommitTable, *, uuid: UUID) -> engine.TableMetadata:
    return engine.commit(
        None,
        commit.requirements,
        commit.updates,
        base_location=None,
        now_ms=now_ms(),
        new_uuid=str(uuid),
        default_version=namespace.warehouse.format_policy.for_new_tables,
    )


def add_by_commit(ready: tabulars.Creation) -> Stored:
    """The second half of `create_by_commit`."""
    with _name_required(ready.namespace, ready.name):
        return tabulars.add(ready)


@contextmanager
def _name_required(namespace: Granted[Namespace], name: str) -> Iterator[None]:
    try:
        yield
    except tabulars.TableExists as error:
        raise CommitFailed(f"Requirement failed: table already exists: {namespace.target}.{name}") from error


def _creation(
    namespace: Granted[Namespace], name: str, metadata: engine.TableMetadata, *, claim: Claim
) -> tabulars.Creation:
    # the row has the normal form, however the client writes the location: overlaps are found by comparing texts
    new = dataclasses.replace(new_metadata(metadata), location=claim.location)
    return tabulars.Creation(
        namespace=namespace,
        name=name,
        kind=_TABLE,
        new=new,
        event="createTable",
        claim=claim,
    )


def commit(granted: Granted[Tabular], request: CommitTable) -> Stored:
    """Apply updates whose requirements hold; if nothing changes, no new metadata file is written.

    Raises CommitFailed when a requirement does not hold, StaleUpdate for a snapshot built on an older state.
    """
    return pointer.commit(prepared(granted, request))


def prepared(granted: Granted[Tabular], request: CommitTable, *, rules: Combined | None = None) -> pointer.Commit:
    """The table's part of a commit, not carried out yet; `rules` as in `pointer.Commit`."""
    commit_limits.check_commit(request.requirements, request.updates)

    def proposal(before: engine.TableMetadata, after: engine.TableMetadata) -> Proposal:
        about = gate.about_tabular(granted.target)
        return Proposal("commit", about, before, after, granted.context, request.requirements, request.updates)

    def propose(base: Stored, new: NewMetadata) -> Proposal:
        return proposal(_opened(base), new.opened or engine.TableMetadata.decode(new.encoded))

    def compute(base: Stored, rules: Combined | None) -> NewMetadata | None:
        before = _opened(base)
        after = engine.commit(
            before,
            request.requirements,
            request.updates,
            base_location=base.tabular.metadata_location,
            now_ms=now_ms(),
            new_uuid=before.uuid,
        )
        warehouse = granted.target.namespace.warehouse
        if after.format_version != before.format_version:
            warehouse.format_policy.ensure_allowed(after.format_version)
        if after is before:
            return None
        data_paths.check(warehouse, after.location, after.properties, before=before.properties)
        if rules is not None:
            gate.check(proposal(before, after), rules)
        return new_metadata(after, obsolete=engine.removed_metadata_files(before, after))

    size = commit_limits.size(request.requirements, request.updates)
    return pointer.Commit(granted, compute, propose, "updateTable", size, rules)


def _opened(stored: Stored) -> engine.TableMetadata:
    return stored.opened or engine.TableMetadata.decode(stored.metadata)


def register(
    namespace: Granted[Namespace], name: str, metadata_location: str, *, replacing: Granted[Tabular] | None
) -> Stored:
    """Register an existing metadata file as a table; `replacing` is the table of that name that it replaces.

    Raises ValidationFailed for a file that is missing or is not table metadata, InvalidArgument for one outside the
    warehouse, AlreadyExists for a taken name or location.
    """

    def read(file: bytes) -> NewMetadata:
        metadata = engine.TableMetadata.read_file(file)
        namespace.target.warehouse.format_policy.ensure_allowed(metadata.format_version)
        _judge_registered(namespace, name, metadata, replacing.target if replacing else None)
        return new_metadata(metadata)

    return tabulars.register(
        namespace,
        name,
        _TABLE,
        metadata_location,
        read=read,
        replacing=replacing.target if replacing else None,
    )


def _judge_registered(
    namespace: Granted[Namespace], name: str, metadata: engine.TableMetadata, replaced: Tabular | None
) -> None:
    """A table that replaces another one is judged as a change of that one."""
    about, before = gate.about_new(namespace, name, _TABLE), None
    if replaced is not None:
        about, before = gate.about_tabular(replaced), _opened(pointer.newest(replaced))
    rules = effective.of_namespace(namespace.target) if replaced is None else effective.of_tabular(replaced)
    gate.check_and_ask(Proposal("register", about, before, metadata, namespace.context), rules)


def metadata_at(warehouse: Granted[Warehouse], metadata_location: str) -> bytes:
    """The metadata in a file of the warehouse, whether or not a table points to it.

    Raises ValidationFailed for a file that is missing or is not table metadata.
    """
    file = locations.inside(warehouse.target, metadata_location)
    return engine.TableMetadata.read_file(metadata_files.read(warehouse.target, file)).encode()


def referenced_only(stored: Stored) -> bytes:
    """The metadata with only those snapshots that a branch or tag names (`snapshots=refs`)."""
    return engine.TableMetadata.decode(stored.metadata).with_referenced_snapshots_only().encode()


def new_metadata(metadata: engine.TableMetadata, *, obsolete: Sequence[str] = ()) -> NewMetadata:
    encoded, opened = metadata.sealed()
    location = metadata.location.rstrip("/")
    return NewMetadata(metadata.uuid, location, encoded, metadata.properties, tuple(obsolete), opened=opened)


def is_creation(requirements: Sequence[msgspec.Raw]) -> bool:
    return engine.requirement_is_create(requirements)
