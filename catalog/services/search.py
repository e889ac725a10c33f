"""Finds tables and views of a warehouse by what their names have in common with a search; called by the management API.

Similarity compares the sets of three-letter sequences (of each word, with two blanks before it and one after it). The
database finds names that contain any three-letter sequence of the search, by plain text operators, without an
extension.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from catalog import access
from catalog.models import Namespace, Tabular
from catalog.services.tags.finding import TAGGED, Tagged
from lakewarden.authz.actions import WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import visible_objects
from lakewarden.errors import InvalidArgument, Unavailable
from lakewarden.names import match_key
from lakewarden.prepared_statements import fetch
from tenants import access as tenants_access
from tenants.models import Warehouse

MAX_RESULTS = 10
MAX_SEARCH_LENGTH = 64
CANDIDATES = 20_000
"""Names for which the similarity is computed; further names that contain a part of the search are ignored."""
NEAREST = 200
TIMEOUT_MS = 5_000
_PART = 3
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Found:
    """`distance` is from 0 (the same words) to 1 (nothing in common)."""

    tabular: Tabular
    distance: float


def search(granted: Granted[Warehouse], text: str, tagged: Tagged | None = None) -> list[Found]:
    """The ten most similar that the caller may see, best first; an id finds the object, or the content of a namespace.

    `tagged`: only those with the tag; then the search may be empty, and finds them in the order of their names.

    Raises InvalidArgument for an empty or too long search, Unavailable when the warehouse is too large to be searched
    in time.
    """
    if text or tagged is None:
        _check(text)
    identifier = _uuid(text)
    if identifier is not None and tagged is None:
        return [Found(tabular, 0.0) for tabular in _visible(granted, _of_id(granted, identifier))]
    folded = match_key(text)
    wanted = letters(folded)
    names = dict(_nearest(granted, _parts(folded), folded, tagged))
    distances = {identifier: _distance(wanted, name) if text else 0.0 for identifier, name in names.items()}
    ranked = sorted(names, key=lambda identifier: (distances[identifier], names[identifier]))
    rows = _rows(ranked)
    shown = _visible(granted, [rows[identifier] for identifier in ranked if identifier in rows])
    return [Found(tabular, distances[tabular.id]) for tabular in shown]


def letters(text: str) -> frozenset[str]:
    """The three-letter sequences by which similarity is measured."""
    padded = (f"  {word} " for word in _WORD.findall(text))
    return frozenset(word[at : at + _PART] for word in padded for at in range(len(word) - _PART + 1))


def _check(text: str) -> None:
    if not text.strip():
        raise InvalidArgument("Invalid search: it is empty")
    if len(text) > MAX_SEARCH_LENGTH:
        raise InvalidArgument(f"Invalid search: {len(text)} characters, at most {MAX_SEARCH_LENGTH} are allowed")
    if any(character < " " or "\ud800" <= character <= "\udfff" for character in text):
        raise InvalidArgument(f"Invalid search: {text!r} contains a character that names cannot have")


def _parts(folded: str) -> list[str]:
    """The texts of which a candidate's name contains at least one; a short word is searched for as it is."""
    words = _WORD.findall(folded) or [folded.strip()]
    return sorted({word[at : at + _PART] for word in words for at in range(max(1, len(word) - _PART + 1))})


def _nearest(
    granted: Granted[Warehouse], parts: Sequence[str], folded: str, tagged: Tagged | None
) -> list[tuple[UUID, str]]:
    """(id, full folded name) of those that share most parts."""
    patterns = [f"%{_escaped(part)}%" for part in parts]
    whole = f"%{_escaped(folded.strip())}%"
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("select set_config('statement_timeout', %s, true)", [str(TIMEOUT_MS)])
            found = fetch(
                _NEAREST_TAGGED if tagged else _NEAREST,
                {
                    "in": granted.target.id,
                    "parts": patterns,
                    "whole": whole,
                    "candidates": CANDIDATES,
                    "nearest": NEAREST,
                    **_sight(granted),
                    **(tagged.parameters if tagged else {}),
                },
            )
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise Unavailable(
                "The search took too long: search for more letters of the name", retry_after_s=5
            ) from error
        raise
    return [(identifier, name) for identifier, name in found]


def _distance(wanted: frozenset[str], name: str) -> float:
    found = letters(name)
    together = len(wanted | found)
    return round(1 - len(wanted & found) / together, 6) if together else 0.0


def _visible(granted: Granted[Warehouse], tabulars: Sequence[Tabular]) -> list[Tabular]:
    sees_all = granted.allows(WarehouseAction.LIST_EVERYTHING)
    shown: list[Tabular] = []
    for tabular in tabulars:
        if sees_all or access.may_see(granted.context, tabular):
            shown.append(tabular)
            if len(shown) == MAX_RESULTS:
                break
    return shown


def _sight(granted: Granted[Warehouse]) -> dict[str, object]:
    """The parameters of `_SEEN`."""
    shown_to = tenants_access.shown_to(granted, WarehouseAction.LIST_EVERYTHING, granted.target.project)
    return {
        "everything": shown_to is None,
        "principals": list(shown_to or ()),
        "showing": visible_objects.SHOWING_ANY,
        "showing_below": visible_objects.SHOWING_BELOW,
    }


def _of_id(granted: Granted[Warehouse], identifier: UUID) -> list[Tabular]:
    warehouse = granted.target
    found = list(Tabular.objects.placed().filter(warehouse=warehouse, uuid=identifier))
    if not Namespace.objects.filter(id=identifier, warehouse=warehouse).exists():
        return found
    # a client may have chosen the namespace's id as a table's uuid
    inside = [row[0] for row in fetch(_INSIDE, {"in": identifier, "nearest": NEAREST, **_sight(granted)})]
    rows = _rows(inside)
    return [*found, *(rows[each] for each in inside if each in rows)]


def _rows(identifiers: Sequence[UUID]) -> dict[UUID, Tabular]:
    return Tabular.objects.placed().in_bulk(identifiers)


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


# what only others see must not use up the places
_SEEN = f"""
    (%(everything)s
     or {visible_objects.HELD_ON.format(kind="t.kind", id="t.id::text", showing="%(showing)s")}
     or {visible_objects.HELD_ON_ANY.format(path="n.lineage::text[]", showing="%(showing_below)s")})
"""
_INSIDE = f"""
    select t.id from tabular t join namespace n on n.id = t.namespace_id
    where t.namespace_id = %(in)s and t.deleted_at is null and {_SEEN} order by t.name_key limit %(nearest)s
"""  # noqa: S608 text of our own
# names that contain the whole search come first, so that a common part does not use up the candidates
_TEMPLATE = """
    with {tagged} named as not materialized (
        select t.id, replace(n.path_key, chr(31), '.') || '.' || t.name_key as name
        from tabular t join namespace n on n.id = t.namespace_id
        where t.warehouse_id = %(in)s and t.deleted_at is null and {seen} {filter}
    ),
    candidate as (
        (select id, name from named where name like %(whole)s limit %(candidates)s)
        union
        (select id, name from named where name like any(%(parts)s::text[]) limit %(candidates)s)
    )
    select id, name from candidate
    order by (select count(*) from unnest(%(parts)s::text[]) p where name like p) desc, length(name), name
    limit %(nearest)s
"""
_NEAREST = _TEMPLATE.format(tagged="", seen=_SEEN, filter="")
_NEAREST_TAGGED = _TEMPLATE.format(tagged=TAGGED, seen=_SEEN, filter="and t.id in (select id from tagged)")
