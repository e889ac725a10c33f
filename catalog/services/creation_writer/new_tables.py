"""Creates ordinary tables, whose location the catalog chooses; their files are written in parallel."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from catalog.documents import pack
from catalog.models import Namespace, Tabular
from catalog.models.tabular import TABULAR
from catalog.services import data_paths, limits, location_claims, locations, metadata_files
from catalog.services.client_access import NOTHING
from catalog.services.client_access import Addition as Means
from catalog.services.commit_writer import file_threads
from catalog.services.contracts import effective, gate
from catalog.services.contracts.combined import Combined
from catalog.services.creation_writer import additions
from catalog.services.creation_writer.additions import TABULARS, Addition
from catalog.services.pointer import Stored, change_of
from catalog.services.tables import CreateTable, creation, first_metadata, new_metadata
from catalog.services.tabulars import has_room
from lakewarden.authz.interface import Granted
from lakewarden.errors import LakewardenError
from lakewarden.hot.coalescer import NotAnswered
from lakewarden.hot.pace import PACE
from lakewarden.ids import new_id
from lakewarden.names import check_name, match_key

LARGEST_ASKED: Final = 32 * 1024
"""Bytes of a request: a larger one would block the event loop for too long."""

_running: set[asyncio.Task[tuple[Stored, Means] | None]] = set()


Access = Callable[[Tabular], Awaitable[Means]]
"""Asks for the means by which the creator reaches the files of a table that is not created yet."""


async def create_table(
    namespace: Granted[Namespace], request: CreateTable, body: bytes, *, is_taken: bool, access: Access
) -> tuple[Stored, Means] | None:
    """As `tables.create`, for ordinary requests; for all others it changes nothing and returns None.

    `is_taken`: whether the name was when the namespace was looked up. It is completed even if the caller disconnects.
    Raises CommitStateUnknown, and what `access` raises: then nothing is created.
    """
    target = namespace.target
    is_chosen = request.location is not None or not target.warehouse.profile.layout.has_own_tabulars
    is_free = location_claims.free_folder(target.id) is not None
    if is_taken or is_chosen or not is_free or request.stage_create or len(body) > LARGEST_ASKED:
        return None
    task = asyncio.create_task(_create(namespace, request.name, body, access))
    _running.add(task)
    task.add_done_callback(_running.discard)
    return await asyncio.shield(task)


async def _create(namespace: Granted[Namespace], name: str, body: bytes, access: Access) -> tuple[Stored, Means] | None:
    target = namespace.target
    try:
        check_name(name, what=Tabular.Kind.TABLE)
        if not has_room(target):
            return None
        rules = await effective.found(target)
        if rules is not None and rules.verifiers:
            return None  # `tables.create` asks them
        caller = namespace.context.caller.id
        stored, content = await PACE.run(caller, partial(_first, namespace, name, body, rules))
    except (LakewardenError, NotAnswered):
        return None  # `tables.create` raises the error
    warehouse, file = target.warehouse, stored.tabular.metadata_location
    # at the same time: both may be requests to the store
    asking = asyncio.ensure_future(access(stored.tabular)) if warehouse.profile.CLIENTS_NEED_CONFIG else None
    (error,) = await file_threads.store(warehouse, [(file, content)])
    means, refused = await _settled(asking) if asking else (NOTHING, None)
    if isinstance(error, file_threads.NotWritten):
        raise error
    if error is not None:
        return None
    if refused is None and await additions.add(TABULARS, _addition(namespace, stored)):
        return stored, means
    file_threads.discard(warehouse, [file])
    if refused is not None:
        raise refused
    return None


async def _settled(asking: "asyncio.Future[Means]") -> tuple[Means, BaseException | None]:
    await asyncio.wait({asking})
    refused = asking.exception()
    return (asking.result(), None) if refused is None else (NOTHING, refused)


def _first(granted: Granted[Namespace], name: str, body: bytes, rules: Combined | None) -> tuple[Stored, bytes]:
    """The table as it will be, and the content of its metadata file."""
    namespace = granted.target
    warehouse, uuid = namespace.warehouse, new_id()
    location = locations.default_location(namespace, name, uuid)
    place = locations.inside(warehouse, location)
    metadata = first_metadata(namespace, body, uuid=uuid, location=location)
    data_paths.check(warehouse, place, metadata.properties, before={})
    if rules is not None:
        gate.check(creation(granted, name, metadata), rules)
    new = new_metadata(metadata)
    limits.check(new, None)
    file, content = metadata_files.prepare(warehouse, place, new.encoded, version=0, properties=new.properties)
    tabular = TABULAR.new(
        id=new_id(),
        warehouse_id=warehouse.id,
        namespace_id=namespace.id,
        kind=Tabular.Kind.TABLE,
        name=name,
        name_key=match_key(name),
        uuid=uuid,
        location=place,
        metadata_location=file,
    )
    tabular.namespace = namespace
    return Stored(tabular, pack(file, new.encoded)), content


def _addition(namespace: Granted[Namespace], stored: Stored) -> Addition:
    tabular = stored.tabular
    columns: dict[str, object] = {
        "name": tabular.name,
        "name_key": tabular.name_key,
        "uuid": tabular.uuid,
        "location": tabular.location,
        "metadata_location": tabular.metadata_location,
    }
    return Addition(tabular.id, namespace, change_of("createTable", tabular), columns, stored.document)
