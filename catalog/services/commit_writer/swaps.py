"""Moves the pointers of many tables by one statement in one round trip, which never waits for a row or key lock."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from catalog.services.commit_writer.chains import Chain
from catalog.services.pointer import commit_of
from catalog.services.shared_statements import together_or_each
from lakewarden.events import batch_change_recording as recording
from lakewarden.events.batch_change_recording import ALL_REMEMBERED, ASKED, RECORDED, GroupedChange
from lakewarden.hot.batches import Batches
from lakewarden.hot.statements import Statement
from lakewarden.postgres.bounded import AsyncBounded
from lakewarden.prepared_statements import rows_of
from tenants.models.warehouse import ACTIVE_IN_EPOCH

MOST: Final = 64
"""Commits in a statement."""
AT_ONCE: Final = 2


class Swap(Enum):
    DONE = "all its commits are committed"
    LOST = "its row was changed, moved or locked by somebody else, or rights were changed"
    FAILED = "the database refused it"


@dataclass(frozen=True, slots=True)
class Repeated:
    """The changes whose idempotency keys are in use, by their numbers in the chain from 0; nothing was applied."""

    changes: frozenset[int]


Outcome = Swap | Repeated


async def swap(chains: Sequence[Chain]) -> Sequence[Outcome | Exception]:
    """The outcome of each chain. CommitStateUnknown if the database did not answer."""
    return await together_or_each(chains, swap_on, refused=Swap.FAILED)


async def swap_on(usable: AsyncBounded, chains: Sequence[Chain]) -> list[Outcome]:
    """In the connection's transaction, or in one of its own. Raises psycopg.Error."""
    changes = [
        (number, at, GroupedChange(number, commit_of(step.asked.commit.event, step.base, state.tabular), context))
        for number, chain in enumerate(chains, start=1)
        for at, (step, _, state) in enumerate(chain.changes)
        for context in (step.asked.commit.granted.context,)
    ]
    parameters = _pointers(chains) | recording.parameters([change for *_, change in changes])
    held, unusable, _ = await _SWAP.fetch_one(usable, parameters)
    repeated: dict[int, set[int]] = {}
    for change in unusable or ():
        number, at, _ = changes[change - 1]
        repeated.setdefault(number, set()).add(at)
    done = frozenset(held or ())
    return [
        Swap.DONE if number in done else Repeated(frozenset(repeated[number])) if number in repeated else Swap.LOST
        for number in range(1, len(chains) + 1)
    ]


def _pointers(chains: Sequence[Chain]) -> dict[str, object]:
    rows, contents, start = [], [], 1
    for number, chain in enumerate(chains, start=1):
        base, tip = chain.base.tabular, chain.tip
        rows.append(
            {
                "g": number,
                "id": base.id,
                "base": base.version,
                "namespace_id": base.namespace_id,
                "name_key": base.name_key,
                "epoch": chain.steps[0].asked.epoch,
                "version": tip.tabular.version,
                "file": tip.tabular.metadata_location,
                "crc": tip.document.crc,
                "length": tip.document.length,
                "content_from": start,
                "content_size": len(tip.document.content),
            }
        )
        contents.append(tip.document.content)
        start += len(tip.document.content)
    return {"pointers": rows_of(rows), "contents": b"".join(contents)}


_SWAP: Final = Statement(f"""
    with pointers as materialized (
        -- a table twice would have either state, and both commits would pass for done: the later one has lost
        select distinct on (id) *, substr(%(contents)s::bytea, content_from, content_size) as content
        from jsonb_to_recordset(%(pointers)s::jsonb)
            as p(g int, id uuid, base bigint, namespace_id uuid, name_key text, epoch bigint, version bigint,
                 file text, crc bigint, length bigint, content_from int, content_size int)
        order by id, g
    ),
    {ASKED},
    held as materialized (
        select p.g from pointers p
        join tabular t on t.id = p.id and t.version = p.base and t.namespace_id = p.namespace_id
            and t.name_key = p.name_key and t.deleted_at is null
        {ACTIVE_IN_EPOCH.format(warehouse="t.warehouse_id", epoch="p.epoch")}
        where not exists (select 1 from unusable_keys u where u.g = p.g)
        order by t.id for no key update of t skip locked
    ),
    moved as (
        update tabular t
        set version = p.version, metadata_location = p.file, updated_at = now()
        from pointers p join held using (g) where t.id = p.id
    ),
    stored as (
        update tabular_document d set version = p.version, content = p.content, crc = p.crc, length = p.length
        from pointers p join held using (g) where d.tabular_id = p.id
    ),
    {RECORDED}
    select (select array_agg(g) from held), (select array_agg(n) from unusable_keys), {ALL_REMEMBERED}
""")  # noqa: S608 constants

SWAPS: Final[Batches[Chain, Outcome]] = Batches(
    swap, most=MOST, weigh=lambda chain: len(chain.changes), at_once=AT_ONCE
)
