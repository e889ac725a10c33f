"""Views: create, load, replace. What they share with tables is in `tabulars`."""

import dataclasses

import msgspec

from catalog.iceberg import views as engine
from catalog.models import Namespace, Tabular
from catalog.services import commit_limits, location_claims, locations, pointer, tabulars
from catalog.services.contracts import gate
from catalog.services.contracts.combined import Combined
from catalog.services.contracts.proposals import Proposal
from catalog.services.pointer import NewMetadata, Stored
from catalog.services.tables import now_ms
from lakewarden.authz.interface import Granted
from lakewarden.ids import new_id

_VIEW = Tabular.Kind.VIEW


class CreateView(msgspec.Struct):
    """The members of a create request that the catalog itself reads; the engine reads the rest."""

    name: str
    location: str | None = None


class CommitView(msgspec.Struct):
    updates: list[msgspec.Raw]
    requirements: list[msgspec.Raw] = []


def create(namespace: Granted[Namespace], request: CreateView, body: bytes) -> Stored:
    """Create a view from the whole request `body`; raises as `tables.create` does."""
    target = namespace.target
    tabulars.check_free(target, request.name, _VIEW)
    uuid = new_id()
    location = locations.default_location(target, request.name, uuid) if request.location is None else request.location
    claim = location_claims.in_namespace(
        target,
        locations.inside(target.warehouse, location),
        context=namespace.context,
        generated=request.location is None and target.warehouse.profile.layout.has_own_tabulars,
    )
    metadata = engine.create(body, uuid=str(uuid), location=location, now_ms=now_ms())
    gate.check_creation(_proposal("create", namespace, request.name, metadata))
    return tabulars.insert(
        tabulars.Creation(
            namespace=namespace,
            name=request.name,
            kind=_VIEW,
            new=dataclasses.replace(_new(metadata), location=claim.location),
            event="createView",
            claim=claim,
        )
    )


def register(namespace: Granted[Namespace], name: str, metadata_location: str) -> Stored:
    """Register an existing metadata file as a view; raises as `tables.register` does."""

    def read(file: bytes) -> NewMetadata:
        metadata = engine.ViewMetadata.read_file(file)
        gate.check_creation(_proposal("register", namespace, name, metadata))
        return _new(metadata)

    return tabulars.register(namespace, name, _VIEW, metadata_location, read=read)


def _proposal(change: str, namespace: Granted[Namespace], name: str, metadata: engine.ViewMetadata) -> Proposal:
    return Proposal(change, gate.about_new(namespace, name, _VIEW), None, metadata, namespace.context)


def replace(granted: Granted[Tabular], request: CommitView) -> Stored:
    """Apply updates whose requirements hold, as `tables.commit` does."""
    commit_limits.check_commit(request.requirements, request.updates)

    def proposal(before: engine.ViewMetadata, after: engine.ViewMetadata) -> Proposal:
        about = gate.about_tabular(granted.target)
        return Proposal("commit", about, before, after, granted.context, request.requirements, request.updates)

    def propose(base: Stored, new: NewMetadata) -> Proposal:
        return proposal(engine.ViewMetadata.decode(base.metadata), engine.ViewMetadata.decode(new.encoded))

    def compute(base: Stored, rules: Combined | None) -> NewMetadata | None:
        before = engine.ViewMetadata.decode(base.metadata)
        after = engine.commit(before, request.requirements, request.updates, now_ms=now_ms())
        if after is before:
            return None
        gate.check(proposal(before, after), rules)
        return _new(after)

    size = commit_limits.size(request.requirements, request.updates)
    return pointer.commit(pointer.Commit(granted, compute, propose, "updateView", size))


def _new(metadata: engine.ViewMetadata) -> NewMetadata:
    return NewMetadata(metadata.uuid, metadata.location.rstrip("/"), metadata.encode(), dict(metadata.properties))
