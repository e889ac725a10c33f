"""Changes the properties of namespaces: several by one statement, each from the state that it was computed from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from catalog.models import Namespace
from catalog.services.change_writer import running
from catalog.services.namespaces import PropertyChange, change_of
from catalog.services.shared_statements import MOST, executed, together_or_each
from lakewarden.authz.interface import Granted
from lakewarden.errors import LakewardenError
from lakewarden.events import batch_change_recording as recording
from lakewarden.events.batch_change_recording import ALL_REMEMBERED, ASKED, RECORDED, GroupedChange
from lakewarden.hot.batches import Batches
from lakewarden.hot.statements import Statement
from lakewarden.postgres.bounded import AsyncBounded
from lakewarden.prepared_statements import rows_of
from tenants.models.warehouse import ACTIVE_IN_EPOCH


@dataclass(frozen=True, slots=True)
class _Update:
    granted: Granted[Namespace]
    change: PropertyChange


async def update(
    granted: Granted[Namespace], *, removals: Sequence[str], updates: dict[str, str]
) -> dict[str, list[str]] | None:
    """As `namespaces.update_properties`; None, having changed nothing, if something else has changed it meanwhile.

    The properties of the namespace must have been read. It is completed even if the caller disconnects. Raises
    CommitStateUnknown.
    """
    try:
        change = PropertyChange.of(granted.target, granted.target.properties, removals=removals, updates=updates)
    except LakewardenError:
        return None  # `namespaces.update_properties` raises the error
    done = _UPDATES.do(_Update(granted, change), caller=granted.context.caller.id)
    return change.answer if await running.to_the_end(done) else None


async def _update_all(updates: Sequence[_Update]) -> Sequence[bool | Exception]:
    return await together_or_each(updates, _execute, refused=False)


async def _execute(usable: AsyncBounded, updates: Sequence[_Update]) -> list[bool]:
    return await executed(_STATEMENT, usable, _parameters(updates), count=len(updates), changes_grants=False)


def _parameters(updates: Sequence[_Update]) -> dict[str, object]:
    changes = [
        GroupedChange(
            number,
            change_of("updateNamespaceProperties", each.granted.target, **each.change.told),
            each.granted.context,
        )
        for number, each in enumerate(updates)
    ]
    return recording.parameters(changes) | {"rows": rows_of([_row(*each) for each in enumerate(updates)])}


def _row(number: int, update: _Update) -> dict[str, object]:
    target = update.granted.target
    return {
        "g": number,
        "id": target.id,
        "version": target.version,
        "path_key": target.path_key,
        "epoch": target.warehouse.project.authz_epoch,
        "properties": update.change.after,
    }


_STATEMENT: Final = Statement(f"""
    with asked as materialized (
        -- of two changes of one namespace, the later one is computed anew
        select distinct on (id) *
        from jsonb_to_recordset(%(rows)s::jsonb)
            as a(g int, id uuid, version bigint, path_key text, epoch bigint, properties jsonb)
        order by id, g
    ),
    {ASKED},
    there as materialized (
        select a.* from asked a
        join namespace n on n.id = a.id and n.version = a.version and n.path_key = a.path_key and n.deleted_at is null
        {ACTIVE_IN_EPOCH.format(warehouse="n.warehouse_id", epoch="a.epoch")}
        where not exists (select 1 from unusable_keys u where u.g = a.g)
        order by n.id for no key update of n skip locked
    ),
    held as materialized (
        select g from there
    ),
    updated as (
        update namespace n set properties = there.properties, version = n.version + 1, updated_at = now()
        from there where n.id = there.id
    ),
    {RECORDED}
    select (select array_agg(g) from held), {ALL_REMEMBERED}
""")  # noqa: S608 constants

_UPDATES: Final[Batches[_Update, bool]] = Batches(_update_all, most=MOST, at_once=2)
