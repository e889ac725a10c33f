"""The end of a soak: compares the whole catalog, as both replicas return it, the records and the files with the ledger."""

import asyncio
import time
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from tests.integration.replicas.exchange import Exchange
from tests.soak.book import CONNECTIONS, Book, Warehouse
from tests.soak.clients import Clients
from tests.soak.ledger import Finding, Outcome, Verdict
from tests.soak.slots import Slot, shown
from tests.soak.stack import Stack
from tests.soak.timeline import SETTLED_S
from tests.soak.wire import Reply

END = "end"
"""Findings of the last comparison, which no single fault explains."""
_FIXED = {"shared", "granted", "probe"}


def compare(book: Book, clients: Clients, stack: Stack, *, within_s: float) -> None:
    """Nothing is broken and nobody writes any more; what is wrong is added to the book's findings."""
    time.sleep(SETTLED_S + 0.2)
    _let_time_pass(stack)
    _wait_for_work(book, stack, within_s)
    book.operations[END] += asyncio.run(_compare_catalog(book, clients))
    _compare_records(book, stack)
    _compare_files(book)


def _let_time_pass(stack: Stack) -> None:
    """What is dropped has expired, as the database sees it."""
    with stack.database() as database:
        database.execute("update deletion set expires_at = clock_timestamp() where expires_at > clock_timestamp()")
        database.execute(
            "update procrastinate_jobs set scheduled_at = now() where status = 'todo' and scheduled_at > now()"
        )


def _wait_for_work(book: Book, stack: Stack, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    with stack.database() as database:
        while (left := database.execute(_LEFT).fetchone()) != (0, 0):
            if time.monotonic() > deadline:
                what = f"{left} deletions and purges were not done {within_s:.0f} s after the last fault"
                book.findings.append((END, Finding(Verdict.WRONG, what, monotonic())))
                return
            time.sleep(0.2)


async def _compare_catalog(book: Book, clients: Clients) -> int:
    """Every object by its name, and every list; returns how many answers were checked."""
    before = book.checked
    book.exchange = Exchange(most=CONNECTIONS)  # the one before belongs to the clients' loop
    for slot in (each for mine in clients.slots for each in mine):
        if not slot.register.is_certain:
            await slot.settle()
    for port in book.ports:
        for mine in clients.slots:
            for slot in mine:
                for name in slot.names:
                    _keep(book, await slot.look(port, name), f"{slot.kind} {name}")
        for right in clients.rights:
            await right.look(port)
        for table in clients.shared.all:
            reply = await book.read(port, table.path)
            _keep(book, reply.content if reply.status == 200 else None, f"table {table.name}")
            book.note(reply, table.judge(reply) or ([] if reply.status == 200 else [table.elements.missing(reply.end)]))
        for warehouse, kind, within, names, register in book.left:
            for name in names:
                reply = await book.read(port, Slot.path_of(warehouse, kind, within, name))
                finding = register.read(None, reply.start, reply.end, shown(name)) if reply.status == 404 else None
                wrong = None if reply.status == 404 else register.finding(Verdict.WRONG, "is still there", reply.end)
                book.note(reply, [finding, wrong])
        for warehouse in book.warehouses:
            await _compare_lists(book, clients, warehouse, port)
    _compare_pairs(book, clients)
    await book.exchange.close()
    return book.checked - before


def _keep(book: Book, told: Any, name: str) -> None:
    if told is not None and "metadata-location" in told:
        book.kept[told["metadata-location"]] = name


async def _compare_lists(book: Book, clients: Clients, warehouse: Warehouse, port: int) -> None:
    """Nothing is listed that the ledger does not know, and all that it knows."""
    slots = [each for mine in clients.slots for each in mine if each.warehouse == warehouse]
    owners = sorted({each.within for each in slots})
    fixed = set(owners) | (set() if warehouse.is_soft else _FIXED)
    found = await book.read(port, warehouse.path("namespaces"))
    names = {each[0] for each in found.content["namespaces"]}
    _expect(book, found, f"the namespaces of {warehouse}", names, fixed | _live(slots, "namespaces"))
    for within in owners:
        for kind in ("tables", "views"):
            mine = [each for each in slots if each.within == within]
            reply = await book.read(port, warehouse.path("namespaces", within, kind))
            names = {each["name"] for each in reply.content["identifiers"]}
            _expect(book, reply, f"the {kind} of {within} in {warehouse}", names, _live(mine, kind))


def _live(slots: list[Slot], kind: str) -> set[str]:
    values: list[Any] = [each.register.value for each in slots if each.kind == kind]
    return {value[1] for value in values if value[0] == "live"}


def _expect(book: Book, reply: Reply, what: str, found: set[str], wanted: set[str]) -> None:
    lost = [Finding(Verdict.LOST, f"{what}: {each} is not listed", reply.end) for each in wanted - found]
    more = [Finding(Verdict.WRONG, f"{what}: {each} is listed", reply.end) for each in found - wanted]
    book.note(reply, [*lost, *more])


def _compare_pairs(book: Book, clients: Clients) -> None:
    """A transaction has changed both of its tables, or none."""
    for value, one, two in clients.shared.pairs:
        seen = [each.elements.has_seen(value) for each in (one, two)]
        if seen[0] != seen[1]:
            what = f"the transaction that adds {value} has changed one of {one.name} and {two.name} alone"
            book.findings.append((END, Finding(Verdict.WRONG, what, monotonic())))


def _compare_records(book: Book, stack: Stack) -> None:
    """Each acknowledged change is in the audit and in the outbox as often as it was asked for, a refused one never."""
    like = f"soak-{book.seed}-%"
    with stack.database() as database:
        for query in _RECORDED:
            counted: dict[str, int] = {str(name): int(str(number)) for name, number in database.execute(query, [like])}
            judged = book.requests.judge(counted, book.changes_of, monotonic())
            book.findings += [(END, each) for each in judged]
            book.operations[END] += len(book.requests.outcomes)


def _compare_files(book: Book) -> None:
    for location, name in book.gone.items():
        place = Path(urlsplit(location).path)
        book.operations[END] += 1
        if place.exists() and any(each.is_file() for each in place.rglob("*")):
            what = f"{name} was dropped with its files, and there are files in {place.name} still"
            book.findings.append((END, Finding(Verdict.WRONG, what, monotonic())))
    for metadata, name in book.kept.items():
        book.operations[END] += 1
        if not Path(urlsplit(metadata).path).is_file():
            book.findings.append(
                (END, Finding(Verdict.LOST, f"{name} is there, and its metadata file is not", monotonic()))
            )


def resolved(book: Book) -> dict[str, Counter[str]]:
    """How the changes of unknown outcome ended, by kind of fault."""
    told: dict[str, Counter[str]] = {}
    for kind, writes in book.unknown.items():
        counts = told.setdefault(kind, Counter())
        for each in writes:
            counts["applied" if each.seen is not None or each.outcome is Outcome.ACKNOWLEDGED else "not applied"] += 1
    return told


_LEFT = """
    select (select count(*) from deletion), (select count(*) from procrastinate_jobs where queue_name in
        ('tabular_purge', 'soft_deletion') and status in ('todo', 'doing'))
"""
_RECORDED = (
    "select request_id, count(*) from audit_entry where outcome = 'done' and request_id like %s group by 1",
    """
    select request_id, count(*)
    from (select request_id from outbox_event union all select request_id from event_log) e
    where request_id like %s group by 1
    """,
)
