"""The contracts that apply to an object, remembered for the version of its warehouse's contracts.

A look-up reads that version with every object (`Warehouse.contracts`), so nothing is asked where there is no contract,
and a contract that was changed on another replica is never taken from memory.
"""

from typing import Final
from uuid import UUID

import msgspec
from cachetools import LRUCache

from catalog.models import Namespace, Tabular
from catalog.models.data_contract import FOUND
from catalog.services.contracts.combined import Combined, Level, combine
from catalog.services.contracts.documents import Contract
from catalog.tabular_types import word_of
from lakewarden.hot.coalescer import Coalescer, NotAnswered
from lakewarden.prepared_statements import fetch
from tenants.models import Warehouse
from tenants.models.warehouse import CONTRACTS

_CAPACITY: Final = 10_000


class _Row(msgspec.Struct):
    object: UUID
    document: Contract


_ROWS: Final = msgspec.json.Decoder(list[_Row])
_Key = tuple[UUID, int, tuple[UUID, ...], tuple[str, ...]]

_REMEMBERED: Final[LRUCache[_Key, Combined | None]] = LRUCache(_CAPACITY)
_FOUND: Final = Coalescer(FOUND)
_NOW: Final = f"select {CONTRACTS.format(warehouse='%s')}"


def of_namespace(namespace: Namespace) -> Combined | None:
    """What applies to whatever is created in the namespace; None: nothing."""
    return _of(namespace, None)


def of_tabular(tabular: Tabular) -> Combined | None:
    """What applies to the table or view, where it is now; None: nothing."""
    return _of(tabular.namespace, tabular)


async def found(namespace: Namespace, tabular: Tabular | None = None) -> Combined | None:
    """As the functions above, on the event loop. Raises NotAnswered."""
    if not namespace.warehouse.contracts:
        return None
    key = _key(namespace, tabular)
    if key in _REMEMBERED:
        return _REMEMBERED[key]
    row = await _FOUND.find((key[0], _ids(key)))
    if row is None:
        raise NotAnswered
    return _remember(key, row[0], namespace, tabular)


def levels(namespace: Namespace, tabular: Tabular | None = None) -> dict[UUID, Level]:
    """What may have a contract that applies, outermost first, by the ids of the rows."""
    warehouse = namespace.warehouse
    found = {warehouse.id: of_warehouse(warehouse)}
    for depth, identifier in enumerate(namespace.lineage, start=1):
        found[identifier] = Level("namespace", identifier, ".".join(namespace.path[:depth]))
    if tabular is not None:
        found[tabular.id] = Level(word_of(tabular.kind), tabular.uuid, f"{namespace}.{tabular.name}")
    return found


def of_warehouse(warehouse: Warehouse) -> Level:
    return Level("warehouse", warehouse.id, warehouse.name)


def read(namespace: Namespace, tabular: Tabular | None = None) -> list[tuple[Level, Contract]]:
    """The contracts themselves, outermost first, as they are now."""
    key = _key(namespace, tabular)
    return _placed(_fetched(key), levels(namespace, tabular))


def refresh(warehouse: Warehouse) -> bool:
    """Read the version of the contracts again; returns whether they were changed since the object was looked up."""
    ((now,),) = fetch(_NOW, [warehouse.id])
    if now is None or now == warehouse.contracts:
        return False
    warehouse.contracts = now
    return True


def _of(namespace: Namespace, tabular: Tabular | None) -> Combined | None:
    if not namespace.warehouse.contracts:
        return None
    key = _key(namespace, tabular)
    if key in _REMEMBERED:
        return _REMEMBERED[key]
    return _remember(key, _fetched(key), namespace, tabular)


def _key(namespace: Namespace, tabular: Tabular | None) -> _Key:
    """With the names, which are part of what is remembered."""
    warehouse = namespace.warehouse
    own = () if tabular is None else (tabular.id,)
    named = () if tabular is None else (tabular.name,)
    return warehouse.id, warehouse.contracts, (*namespace.lineage, *own), (warehouse.name, *namespace.path, *named)


def _ids(key: _Key) -> str:
    return ",".join(map(str, (key[0], *key[2])))


def _fetched(key: _Key) -> str:
    ((_, text),) = fetch(FOUND, [[key[0]], [_ids(key)]])
    return str(text)


def _remember(key: _Key, text: str, namespace: Namespace, tabular: Tabular | None) -> Combined | None:
    """If the contracts were changed since the version was read, nobody asks for this version again."""
    placed = _placed(text, levels(namespace, tabular))
    made = _REMEMBERED[key] = combine(placed) if placed else None
    return made


def _placed(text: str, around: dict[UUID, Level]) -> list[tuple[Level, Contract]]:
    by_object = {row.object: row.document for row in _ROWS.decode(text)}
    return [(level, by_object[identifier]) for identifier, level in around.items() if identifier in by_object]
