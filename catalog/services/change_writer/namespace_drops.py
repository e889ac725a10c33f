"""Drops empty namespaces permanently: several by one statement.

What comes into one meanwhile is noticed: whoever adds it refers to the namespace's row, which is locked here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from catalog.models import Namespace
from catalog.services.change_writer import running
from catalog.services.deletion.drop import DropOptions
from catalog.services.deletion.drop_namespace import change
from catalog.services.namespaces import tree_of
from catalog.services.shared_statements import MOST, STILL, executed, together_or_each
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import change_log, epochs, removed_objects
from lakewarden.events import batch_change_recording as recording
from lakewarden.events.batch_change_recording import ALL_REMEMBERED, ASKED, RECORDED, GroupedChange
from lakewarden.hot.batches import Batches
from lakewarden.hot.statements import Statement
from lakewarden.postgres.bounded import AsyncBounded
from lakewarden.prepared_statements import rows_of
from tenants.models.warehouse import ACTIVE_IN_EPOCH


@dataclass(frozen=True, slots=True)
class _Drop:
    granted: Granted[Namespace]
    options: DropOptions


async def drop(granted: Granted[Namespace], options: DropOptions) -> bool:
    """As `deletion.drop_namespace.drop`, for ordinary requests; for all others it changes nothing and returns False.

    It is completed even if the caller disconnects. Raises CommitStateUnknown.
    """
    if options.recursive or options.is_soft(granted.target.warehouse):
        return False
    return await running.to_the_end(_DROPS.do(_Drop(granted, options), caller=granted.context.caller.id))


async def _drop_all(drops: Sequence[_Drop]) -> Sequence[bool | Exception]:
    return await together_or_each(drops, _execute, refused=False)


async def _execute(usable: AsyncBounded, drops: Sequence[_Drop]) -> list[bool]:
    return await executed(_STATEMENT, usable, _parameters(drops), count=len(drops))


def _parameters(drops: Sequence[_Drop]) -> dict[str, object]:
    changes = [
        GroupedChange(number, change(each.granted, each.options, {}), each.granted.context)
        for number, each in enumerate(drops)
    ]
    return recording.parameters(changes) | {
        "rows": rows_of([_row(number, each) for number, each in enumerate(drops)]),
        "logged": change_log.are_logged(),
    }


def _row(number: int, drop: _Drop) -> dict[str, object]:
    target = drop.granted.target
    project = target.warehouse.project
    return {
        "g": number,
        "id": target.id,
        "kind": "namespace",
        "version": target.version,
        "path_key": target.path_key,
        "lineage": target.lineage,
        "warehouse_id": target.warehouse_id,
        "project_id": project.id,
        "epoch": project.authz_epoch,
        "tree": tree_of(target.warehouse_id),
        "is_forced": drop.options.force,
    }


_STATEMENT: Final = Statement(f"""
    with asked as materialized (
        -- of two requests for one namespace, the later one finds it dropped
        select distinct on (id) *
        from jsonb_to_recordset(%(rows)s::jsonb)
            as a(g int, id uuid, kind text, version bigint, path_key text, lineage uuid[], warehouse_id uuid,
                 project_id text, epoch bigint, tree int, is_forced boolean)
        order by id, g
    ),
    {ASKED},
    {STILL},
    there as materialized (
        select a.* from asked a join still using (tree)
        join namespace n on n.id = a.id and n.version = a.version and n.path_key = a.path_key
            and n.lineage = a.lineage and n.deleted_at is null and (a.is_forced or n.protection is null)
        where not exists (select 1 from unusable_keys u where u.g = a.g)
            and not exists (select 1 from namespace c where c.warehouse_id = a.warehouse_id and c.parent_id = a.id)
            and not exists (select 1 from tabular t where t.namespace_id = a.id)
        order by n.id for update of n skip locked
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
    removed as (
        delete from namespace n using going where n.id = going.id
    ),
    {RECORDED}
    select (select array_agg(g) from held), {ALL_REMEMBERED}
""")  # noqa: S608 constants

_DROPS: Final[Batches[_Drop, bool]] = Batches(_drop_all, most=MOST)
