"""Drops tables and views permanently: several by one statement, which waits for nothing but a moment for the project.

For each object, either everything happens (row and document, places, purge, grants, audit, event, idempotency outcome)
or nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from catalog.models import Tabular, occupied_locations, tabular
from catalog.services import locations
from catalog.services.change_writer import running
from catalog.services.deletion.drop import DropOptions
from catalog.services.namespaces import tree_of
from catalog.services.pointer import change_of
from catalog.services.shared_statements import MOST, STILL, executed, together_or_each
from catalog.tabular_types import type_of
from lakewarden import config
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import change_log, epochs, removed_objects
from lakewarden.authz.model import Privilege
from lakewarden.events import batch_change_recording as recording
from lakewarden.events.batch_change_recording import ALL_REMEMBERED, ASKED, RECORDED, GroupedChange
from lakewarden.hot.batches import Batches
from lakewarden.hot.statements import Statement
from lakewarden.postgres.bounded import AsyncBounded
from lakewarden.prepared_statements import rows_of
from lakewarden.tasks import purge, scheduling
from lakewarden.tasks.scope import Entity, Scope
from tenants.models.warehouse import ACTIVE_IN_EPOCH


@dataclass(frozen=True, slots=True)
class _Drop:
    granted: Granted[Tabular]
    options: DropOptions


async def drop(granted: Granted[Tabular], options: DropOptions) -> bool:
    """As `deletion.drop_tabular.drop`, for ordinary requests; for all others it changes nothing and returns False.

    It is completed even if the caller disconnects. Raises CommitStateUnknown.
    """
    if options.is_soft(granted.target.namespace.warehouse):
        return False
    return await running.to_the_end(_DROPS.do(_Drop(granted, options), caller=granted.context.caller.id))


async def _drop_all(drops: Sequence[_Drop]) -> Sequence[bool | Exception]:
    return await together_or_each(drops, _execute, refused=False)


async def _execute(usable: AsyncBounded, drops: Sequence[_Drop]) -> list[bool]:
    return await executed(_STATEMENT, usable, _parameters(drops), count=len(drops))


def _parameters(drops: Sequence[_Drop]) -> dict[str, object]:
    changes = []
    for number, each in enumerate(drops):
        target, options = each.granted.target, each.options
        told = {"purge": options.with_files, "force": options.force}
        change = change_of(f"drop{type_of(target).event}", target, **told)
        changes.append(GroupedChange(number, change, each.granted.context))
    return recording.parameters(changes) | {
        "rows": rows_of([_row(number, each) for number, each in enumerate(drops)]),
        "logged": change_log.are_logged(),
        "purges": rows_of([_purge(number, each) for number, each in enumerate(drops) if each.options.with_files]),
    }


def _row(number: int, drop: _Drop) -> dict[str, object]:
    target = drop.granted.target
    warehouse = target.namespace.warehouse
    return {
        "g": number,
        "id": target.id,
        "kind": target.kind,
        "version": target.version,
        "namespace_id": target.namespace_id,
        "name_key": target.name_key,
        "location": target.location,
        "warehouse_id": warehouse.id,
        "project_id": warehouse.project.id,
        "epoch": warehouse.project.authz_epoch,
        "tree": tree_of(warehouse.id),
        "is_forced": drop.options.force,
        **warehouse.last_access._asdict(),
    }


def _purge(number: int, drop: _Drop) -> dict[str, object]:
    """Of its only location: a table with further ones is left to Django."""
    target = drop.granted.target
    namespace, warehouse = target.namespace, target.namespace.warehouse
    planned = purge.planned(
        warehouse.storage_profile,
        target.location,
        scope=Scope(warehouse.project_id, warehouse.id),
        entity=Entity(target.kind, str(target.uuid), (*namespace.path, target.name)),
        owner=str(target.id),
        within=locations.folder_that_stays(warehouse, namespace, target.location),
    )
    grace = None if drop.options.purge else config.current().deletion.purge_grace_s or None
    return {"g": number, "grace_s": grace, **planned}


_STATEMENT: Final = Statement(f"""
    with asked as materialized (
        -- of two requests for one object, the later one finds it dropped
        select distinct on (id) *
        from jsonb_to_recordset(%(rows)s::jsonb)
            as a(g int, id uuid, kind text, version bigint, namespace_id uuid, name_key text, location text,
                 warehouse_id uuid, project_id text, epoch bigint, tree int, is_forced boolean, lasts float,
                 ends timestamptz)
        order by id, g
    ),
    {ASKED},
    {STILL},
    there as materialized (
        select a.* from asked a join still using (tree)
        join tabular t on t.id = a.id and t.version = a.version and t.namespace_id = a.namespace_id
            and t.name_key = a.name_key and t.location = a.location and t.deleted_at is null
            and (a.is_forced or t.protection is null)
        where not exists (select 1 from unusable_keys u where u.g = a.g)
            and not exists (select 1 from reserved_location r where r.owner_id = a.id and r.kind = 'earlier')
        order by t.id for update of t skip locked
    ),
    {epochs.HELD.format(rows="there")},
    going as materialized (
        select a.* from there a {ACTIVE_IN_EPOCH.format(warehouse="a.warehouse_id", epoch="a.epoch")}
        join projects on projects.id = a.project_id and projects.authz_epoch = a.epoch
    ),
    held as materialized (
        select g from going
    ),
    {removed_objects.REMOVED},
    gone as materialized (
        select going.*, array(
            select g.principal_id from going_grants g
            where g.object_type = going.kind and g.object_id = going.id::text
                and g.privilege = '{Privilege.OWNERSHIP.value}'
        ) as owners
        from going
    ),
    {occupied_locations.RELEASED},
    to_add as materialized (
        select p.*, clock_timestamp() + make_interval(secs => p.grace_s) as at
        from jsonb_to_recordset(%(purges)s::jsonb) as p(g int, grace_s int, {scheduling.PLANNED})
        join held using (g)
    ),
    {scheduling.ADDED},
    {tabular.REMOVED.format(rows="going")},
    {RECORDED}
    select (select array_agg(g) from held), {ALL_REMEMBERED}
""")  # noqa: S608 constants

_DROPS: Final[Batches[_Drop, bool]] = Batches(_drop_all, most=MOST)
