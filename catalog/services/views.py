"""Views: create, load, replace. What they share with tables is in `tabulars`."""

import dataclasses

import msgspec

from catalog.iceberg import views as engine
from catalog.models import Namespace, Tabular
from catalog.services import commit_limits, location_claims, locations, pointer, tabulars
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
    return tabulars.register(
        namespace, name, _VIEW, metadata_location, read=lambda file: _new(engine.ViewMetadata.read_file(file))
    )


def replace(granted: Granted[Tabular], request: CommitView) -> Stored:
    """Apply updates whose requirements hold, as `tables.commit` does."""
    commit_limits.check_commit(request.requirements, request.updates)

    def compute(base: Stored) -> NewMetadata | None:
        before = engine.ViewMetadata.decode(base.metadata)
        after = engine.commit(before, request.requirements, request.updates, now_ms=now_ms())
        return None if after is before else _new(after)

    size = commit_limits.size(request.requirements, request.updates)
    return pointer.commit(pointer.Commit(granted, compute, "updateView", size))


def _new(metadata: engine.ViewMetadata) -> NewMetadata:
    return NewMetadata(metadata.uuid, metadata.location.rstrip("/"), metadata.encode(), dict(metadata.properties))
