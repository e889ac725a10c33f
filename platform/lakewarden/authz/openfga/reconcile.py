"""Compares OpenFGA's tuples with the ledger and repairs them: `lakewarden openfga reconcile`. Also fills a new store.

Servers may keep running. Both sides are first copied to temporary tables, so memory does not grow with their number.
Then each difference is checked again under the lock of the store, because the ledger may have changed since.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal

from lakewarden.authz.openfga import drain, store
from lakewarden.authz.openfga.client import MOST_WRITTEN, OpenFga
from lakewarden.authz.openfga.drain import Connection
from lakewarden.authz.openfga.tuples import Entry, RelationTuple
from lakewarden.config import OpenFgaConfig

SHOWN: Final = 20
"""The number of differences that are listed one by one."""
_PATIENCE_S: Final = 60.0
_FETCHED: Final = 5000

Sign = Literal["+", "-"]


@dataclass(slots=True)
class Difference:
    """What was missing in OpenFGA and what was surplus there; `examples` are the first of them, after a `+` or `-`."""

    pending: int = 0
    compared: int = 0
    missing: int = 0
    surplus: int = 0
    examples: list[str] = field(default_factory=list)

    def lines(self, *, dry_run: bool) -> list[str]:
        """A report for a terminal."""
        verb = "are" if dry_run else "were"
        shown = [] if self.examples == [] else [f"the first {len(self.examples)}:", *self.examples]
        return [
            f"{self.compared} rights and memberships are in the database",
            f"{self.pending} changes {'wait' if dry_run else 'waited'} to be applied",
            f"{self.missing} {verb} missing in OpenFGA, {self.surplus} {verb} there without being in the database",
            *shown,
        ]

    def note(self, sign: Sign, tuples: Sequence[RelationTuple], *, count: int | None = None) -> None:
        number = len(tuples) if count is None else count
        if sign == "+":
            self.missing += number
        else:
            self.surplus += number
        self.examples.extend(f"{sign} {each}" for each in tuples[: max(0, SHOWN - len(self.examples))])


def reconcile(settings: OpenFgaConfig, *, dry_run: bool) -> Difference:
    """Repair all differences, or with `dry_run` only count them.

    With `dry_run`, changes in the log are not applied, so they count as differences, too. Raises Unavailable; what was
    repaired until then stays repaired.
    """
    found = store.migrated(settings)
    difference = Difference()
    with closing(OpenFga(settings, found)) as client, closing(drain.connect(_PATIENCE_S)) as connection:
        difference.pending = _waiting(connection) if dry_run else _drained(connection, client)
        _compare(connection, client)
        difference.compared = _count(connection, "select count(*) from wanted")
        if dry_run:
            _note_examples(connection, difference)
        else:
            for sign, several in _batches(connection):
                difference.note(sign, _repaired(connection, client, sign, several))
            store.mark_filled(settings)
    return difference


def _waiting(connection: Connection) -> int:
    return _count(connection, "select count(*) from authz_change")


def _drained(connection: Connection, client: OpenFga) -> int:
    applied = 0
    while True:
        with drain.exclusively(connection):
            count = drain.apply_oldest(connection, client)
        applied += count
        if count < MOST_WRITTEN:
            return applied


def _compare(connection: Connection, client: OpenFga) -> None:
    """Fill the temporary tables: the tuples found in OpenFGA, those wanted by the ledger, and the difference."""
    connection.execute(_TABLES)
    _copy(connection, "found", client.tuples())
    ledger = _ledger(connection)
    # in parts, because a connection cannot run a query while it copies
    while several := list(islice(ledger, _FETCHED)):
        _copy(connection, "wanted", several)
    connection.execute(_DIFFERENCE)


def _copy(connection: Connection, table: str, tuples: Iterable[RelationTuple]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"copy {table} from stdin".encode()) as rows:
        for each in tuples:
            rows.write_row(each)


def _ledger(connection: Connection) -> Iterator[RelationTuple]:
    """Every row of the ledger as a tuple, sorted by key, read in pages."""
    for statement in (_GRANTS, _MEMBERSHIPS):
        last = 0
        while rows := connection.execute(statement, {"after": last, "limit": _FETCHED}).fetchall():
            yield from (each for _, *entry in rows if (each := Entry(*entry).to_tuple()) is not None)
            last = rows[-1][0]


def _note_examples(connection: Connection, difference: Difference) -> None:
    for sign in ("+", "-"):
        rows = connection.execute(_FIRST, [sign, SHOWN]).fetchall()
        number = connection.execute(_HOW_MANY, [sign]).fetchall()[0][0]
        difference.note(sign, [RelationTuple(*row) for row in rows], count=number)


def _batches(connection: Connection) -> Iterator[tuple[Sign, list[RelationTuple]]]:
    """All differences, in batches that fit in one write; each batch has one sign."""
    signs: tuple[Sign, ...] = ("+", "-")
    for sign in signs:
        last = 0
        while rows := connection.execute(_NEXT, [sign, last, MOST_WRITTEN]).fetchall():
            yield sign, [RelationTuple(*row) for _, *row in rows]
            last = rows[-1][0]


def _repaired(
    connection: Connection, client: OpenFga, sign: Sign, several: Sequence[RelationTuple]
) -> list[RelationTuple]:
    """Repair those that still are different; returns them."""
    with drain.exclusively(connection):
        wanted = _wanted_now(connection, several)
        # a change that is committed after this query is in the log, and is applied after this repair
        if sign == "+":
            repaired = [each for each in several if each in wanted]
            client.write(repaired, [])
        else:
            repaired = [each for each in several if each not in wanted]
            client.write([], repaired)
    return repaired


def _wanted_now(connection: Connection, several: Sequence[RelationTuple]) -> set[RelationTuple]:
    """The tuples for which the ledger has a row now."""
    entries = {each: Entry.of_tuple(each) for each in several}
    known = [entry for entry in entries.values() if entry is not None]
    rows = connection.execute(
        _EXACT,
        {
            "principals": [entry.principal_id for entry in known],
            "relations": [entry.relation for entry in known],
            "types": [entry.object_type for entry in known],
            "ids": [entry.object_id for entry in known],
        },
    ).fetchall()
    wanted = {each for row in rows if (each := Entry(*row).to_tuple()) is not None}
    return wanted | {each for each, entry in entries.items() if entry is None and _is_wanted(connection, each)}


def _is_wanted(connection: Connection, each: RelationTuple) -> bool:
    """For a tuple with a hashed id: whether any row of the ledger is encoded as this tuple."""
    kind = each.object.partition(":")[0]
    relation = each.relation.removesuffix("_here")
    last = 0
    while rows := connection.execute(_LIKE, [kind, relation, last, _FETCHED]).fetchall():
        if any(Entry(*entry).to_tuple() == each for _, *entry in rows):
            return True
        last = rows[-1][0]
    return False


def _count(connection: Connection, statement: str) -> int:
    return int(connection.execute(statement.encode()).fetchall()[0][0])


_TABLES = """
    create temporary table found (tuple_user text, relation text, object text);
    create temporary table wanted (tuple_user text, relation text, object text);
    create temporary table difference
        (id bigint generated always as identity primary key, sign text, tuple_user text, relation text, object text)
"""
_DIFFERENCE = """
    insert into difference (sign, tuple_user, relation, object)
        select '+', d.* from (select * from wanted except select * from found order by 1, 2, 3) as d;
    insert into difference (sign, tuple_user, relation, object)
        select '-', d.* from (select * from found except select * from wanted order by 1, 2, 3) as d
"""
_HOW_MANY = "select count(*) from difference where sign = %s"
_FIRST = "select tuple_user, relation, object from difference where sign = %s order by id limit %s"
_NEXT = """
    select id, tuple_user, relation, object from difference where sign = %s and id > %s order by id limit %s
"""
_GRANTS = """
    select id, principal_id, privilege, object_type, object_id from authz_grant
    where id > %(after)s order by id limit %(limit)s
"""
_MEMBERSHIPS = """
    select id, member_id, 'assignee', 'role', substr(role_id, 6) from authz_membership
    where id > %(after)s order by id limit %(limit)s
"""
_EXACT = """
    with asked(principal, relation, type, id) as (
        select * from unnest(%(principals)s::text[], %(relations)s::text[], %(types)s::text[], %(ids)s::text[])
    )
    select g.principal_id, g.privilege, g.object_type, g.object_id from asked a
    join authz_grant g on (g.principal_id, g.privilege, g.object_type, g.object_id)
        = (a.principal, a.relation, a.type, a.id)
    union all
    select m.member_id, 'assignee', 'role', substr(m.role_id, 6) from asked a
    join authz_membership m on m.member_id = a.principal and m.role_id = 'role:' || a.id
    where a.relation = 'assignee' and a.type = 'role'
"""
_LIKE = """
    with entry as (
        select id, principal_id, privilege, object_type, object_id from authz_grant
        union all
        select id, member_id, 'assignee', 'role', substr(role_id, 6) from authz_membership
    )
    select * from entry where object_type = %s and privilege = %s and id > %s order by id limit %s
"""
