"""Creates ordinary namespaces, whose location the catalog chooses."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from catalog.models import Namespace
from catalog.models.namespace import path_key
from catalog.services import limits, location_claims, locations
from catalog.services.creation_writer import additions
from catalog.services.creation_writer.additions import NAMESPACES, Addition
from catalog.services.namespaces import change_of, check_path, check_properties, has_room
from lakewarden import quotas
from lakewarden.authz.interface import Granted
from lakewarden.errors import LakewardenError
from lakewarden.ids import new_id
from lakewarden.names import match_key
from tenants.models import Warehouse

_running: set[asyncio.Task[bool]] = set()


class Created(NamedTuple):
    """The response's content for a new namespace."""

    path: list[str]
    properties: dict[str, str]


async def create_namespace(
    parent: Granted[Warehouse] | Granted[Namespace], path: Sequence[str], properties: Mapping[str, str]
) -> Created | None:
    """As `namespaces.create`, for ordinary requests; for all others it changes nothing and returns None.

    It is completed even if the caller disconnects. Raises CommitStateUnknown.
    """
    above = parent.target if isinstance(parent.target, Namespace) else None
    warehouse = above.warehouse if above else parent.target
    assert isinstance(warehouse, Warehouse)  # noqa: S101 the other half of the union
    is_chosen = "location" in properties or not warehouse.profile.layout.has_own_folders
    if is_chosen or (above and above.path_key != path_key(path[:-1])):
        return None
    identifier = new_id()
    try:
        check_path(path)
        check_properties(properties)
        limits.check_namespace(properties, before={})
        location = locations.namespace_location(warehouse, above, path[-1], identifier)
    except LakewardenError:
        return None  # `namespaces.create` raises the error
    if not has_room(warehouse):
        return None
    namespace = Namespace(
        id=identifier,
        warehouse=warehouse,
        parent=above,
        path=[*(above.path if above else ()), path[-1]],
        path_key=path_key(path),
        name_key=match_key(path[-1]),
        lineage=[*(above.lineage if above else ()), identifier],
        properties={**properties, "location": location},
    )
    task = asyncio.create_task(additions.add(NAMESPACES, _addition(parent, namespace)))
    _running.add(task)
    task.add_done_callback(_running.discard)
    if not await asyncio.shield(task):
        return None
    # so the creation of its first table need not check the folder
    location_claims.keep_free_folder(identifier, namespace.properties["location"])
    quotas.begin_empty("tables_in_namespace", within=str(identifier))
    return Created(namespace.path, namespace.properties)


def _addition(parent: Granted[Warehouse] | Granted[Namespace], namespace: Namespace) -> Addition:
    columns: dict[str, object] = {
        "parent_id": namespace.parent_id,
        "path": namespace.path,
        "path_key": namespace.path_key,
        "name_key": namespace.name_key,
        "lineage": namespace.lineage,
        "properties": namespace.properties,
    }
    return Addition(namespace.id, parent, change_of("createNamespace", namespace), columns)
