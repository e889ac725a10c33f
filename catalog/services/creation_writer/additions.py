"""Adds the objects of several requests by one statement, which never waits for a lock on a row or key.

For each object, either everything is added (row, document, owner, audit, event, idempotency outcome) or nothing. The
statement cannot skip a name that another transaction is inserting: it waits for a moment, and then leaves the whole
batch to Django.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from catalog.documents import Document
from catalog.models import Namespace, namespace, tabular
from catalog.services.namespaces import tree_of
from catalog.services.shared_statements import MOST, STILL, executed, together_or_each
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import change_log, grants
from lakewarden.authz.model import Privilege
from lakewarden.events import batch_change_recording as recording
from lakewarden.events.batch_change_recording import ALL_REMEMBERED, ASKED, RECORDED, GroupedChange
from lakewarden.events.change_recording import Change
from lakewarden.hot.batches import Batches
from lakewarden.hot.statements import Statement
from lakewarden.postgres.bounded import AsyncBounded
from lakewarden.prepared_statements import rows_of
from tenants.models import Project, Warehouse
from tenants.models.warehouse import ACTIVE_IN_EPOCH, LOCATIONS_KEPT

_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class Addition:
    """A new object in `parent`; `columns` are the values of its row that the creation determines."""

    id: UUID
    parent: Granted[Namespace] | Granted[Warehouse]
    change: Change
    columns: dict[str, object]
    document: Document | None = None

    @property
    def warehouse(self) -> Warehouse:
        target = self.parent.target
        return target.warehouse if isinstance(target, Namespace) else target


async def add(batches: Batches[Addition, bool], addition: Addition) -> bool:
    """Whether it was added. Raises CommitStateUnknown when the database did not answer."""
    return await batches.do(addition, caller=addition.parent.context.caller.id)


async def _add_all(statement: Statement, additions: Sequence[Addition]) -> Sequence[bool | Exception]:
    return await together_or_each(additions, partial(_execute, statement), refused=False)


async def _execute(statement: Statement, usable: AsyncBounded, additions: Sequence[Addition]) -> list[bool]:
    return await executed(statement, usable, _parameters(additions), count=len(additions))


def _parameters(additions: Sequence[Addition]) -> dict[str, object]:
    rows, contents, start = [], [], 1
    for number, each in enumerate(additions):
        row = _row(number, each)
        if each.document is not None:
            content = each.document.content
            row |= {"crc": each.document.crc, "length": each.document.length}
            row |= {"content_from": start, "content_size": len(content)}
            contents.append(content)
            start += len(content)
        rows.append(row)
    changes = [GroupedChange(number, each.change, each.parent.context) for number, each in enumerate(additions)]
    return recording.parameters(changes) | {
        "rows": rows_of(rows),
        "contents": b"".join(contents),
        "logged": change_log.are_logged(),
    }


def _row(number: int, addition: Addition) -> dict[str, object]:
    parent, warehouse = addition.parent, addition.warehouse
    project: Project = warehouse.project
    above = parent.target if isinstance(parent.target, Namespace) else None
    return {
        "g": number,
        "id": addition.id,
        "warehouse_id": warehouse.id,
        "namespace_id": above and above.id,
        "known": above and above.version,
        "base": None if above else warehouse.location,
        "tree": tree_of(warehouse.id),
        "project_id": project.id,
        "epoch": project.authz_epoch,
        "ancestors": [ref.id for ref in parent.chain[1:]],
        "owner": parent.context.caller.owner,
        "actor": parent.context.caller.id,
        "kind": addition.change.object_type,
        **addition.columns,
    }


_COLUMNS = """
    g int, id uuid, warehouse_id uuid, namespace_id uuid, known bigint, base text, tree int,
    project_id text, epoch bigint, ancestors text[], owner text, actor text, kind text
"""
# A namespace that another transaction has locked (to move, drop or change it) is skipped. `for share` reads its newest
# state, even if that was committed after the statement began; `for key share` would not
_STATEMENT = """
    with asked as materialized (
        select a.*{content} from jsonb_to_recordset(%(rows)s::jsonb) as a({common}, {columns})
    ),
    {asked_keys},
    {still},
    place as materialized (
        select n.id, n.version from namespace n
        where n.id in (select a.namespace_id from asked a join still using (tree)) and n.deleted_at is null
        order by n.id for share of n skip locked
    ),
    top as materialized (
        {top}
    ),
    placed as materialized (
        select a.* from asked a join still using (tree)
        left join place on place.id = a.namespace_id
        left join top on top.id = a.warehouse_id
        {in_epoch}
        where case when a.namespace_id is null then top.location = a.base else place.version = a.known end
            and not exists (select 1 from unusable_keys u where u.g = a.g)
    ),
    {added},
    held as materialized (
        select p.g from placed p join added a on a.id = p.id
    ),
    to_give as (
        select p.kind as object_type, p.id::text as object_id, p.project_id, p.ancestors, p.actor as granted_by,
            p.owner as principal_id, '{ownership}' as privilege
        from placed p join held using (g)
    ),
    {given},
    {recorded}
    select (select array_agg(g) from held), {all_remembered}
"""


def _statement(added: str, *, columns: str, content: str = "") -> Statement:
    text = _STATEMENT.format(
        added=added,
        columns=columns,
        content=content,
        common=_COLUMNS,
        asked_keys=ASKED,
        still=STILL,
        top=LOCATIONS_KEPT.format(
            ids="select a.warehouse_id from asked a join still using (tree) where a.namespace_id is null"
        ),
        in_epoch=ACTIVE_IN_EPOCH.format(warehouse="a.warehouse_id", epoch="a.epoch"),
        ownership=Privilege.OWNERSHIP.value,
        given=grants.GIVEN,
        recorded=RECORDED,
        all_remembered=ALL_REMEMBERED,
    )
    return Statement(text)


_TABULARS = _statement(
    tabular.ADDED,
    columns="""name text, name_key text, uuid uuid, location text, metadata_location text, crc bigint, length bigint,
        content_from int, content_size int""",
    content=", substr(%(contents)s::bytea, content_from, content_size) as content",
)
_NAMESPACES = _statement(
    namespace.ADDED,
    columns="parent_id uuid, path text[], path_key text, name_key text, lineage uuid[], properties jsonb",
)

TABULARS: Final[Batches[Addition, bool]] = Batches(partial(_add_all, _TABULARS), most=MOST, at_once=_AT_ONCE)
NAMESPACES: Final[Batches[Addition, bool]] = Batches(partial(_add_all, _NAMESPACES), most=MOST, at_once=_AT_ONCE)
