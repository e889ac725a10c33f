"""The newest state of a table, which commits start from: from memory if that is known to be current, otherwise read."""

from copy import copy
from dataclasses import replace
from typing import Final
from uuid import UUID

from cachetools import LRUCache

from catalog.documents import Document
from catalog.models import Tabular
from catalog.models.tabular import TABULAR
from catalog.services.document_cache import DOCUMENT_CACHE
from catalog.services.pointer import Stored
from lakewarden import board, config
from lakewarden.hot.coalescer import Coalescer, NotAnswered
from lakewarden.hot.sessions import Row
from lakewarden.postgres.bounded import AsyncBounded
from tenants.models.warehouse import ACTIVE_IN_EPOCH

_settings: Final = config.current().catalog
_LARGEST: Final = _settings.shared_commit_bytes


async def newest(known: Tabular) -> Stored | None:
    """The state of the row `known`, which was read for this request, or a newer one.

    None if the document is too large or cannot be read, or the table was removed or renamed. Raises Unavailable when
    the database does not answer.
    """
    last = _COMMITTED.get(known.id)
    if last is not None and last.tabular.version >= known.version and _place(last.tabular) == _place(known):
        return replace(last, tabular=known if last.tabular.version == known.version else _in(known, last.tabular))
    kept = DOCUMENT_CACHE.find(known.id, known.version)
    if kept is not None:
        return Stored(known, kept.document) if kept.document.length <= _LARGEST else None
    try:
        row = await _BASES.find((known.id,))
    except NotAnswered:
        return None
    return None if row is None else _stored(row, known)


def remember(stored: Stored) -> None:
    """Keep a state that was committed, for the next commit to the table."""
    if _weight(stored) <= _COMMITTED.maxsize / 4:
        _COMMITTED[stored.tabular.id] = stored
    else:
        _COMMITTED.pop(stored.tabular.id, None)


def forget(known: Tabular) -> None:
    """Another process has changed the table since, or it has an older state again, from a backup."""
    _COMMITTED.pop(known.id, None)


async def locked(connection: AsyncBounded, known: Tabular) -> Stored | None:
    """As `newest`, with the row locked until the connection's transaction ends; None also when rights were changed.

    Raises psycopg.Error.
    """
    epoch = known.namespace.warehouse.project.authz_epoch
    async with connection.cursor(binary=True) as cursor:
        # first the row alone: a join would give its newest version with an older document
        await cursor.execute(_LOCK, [known.id], prepare=True)
        await cursor.execute(_BASE, [[known.id], epoch], prepare=True)
        row = await cursor.fetchone()
    return None if row is None else _stored(row[1:], known)


def _stored(row: Row, known: Tabular) -> Stored | None:
    *values, content, crc, length = row
    found = TABULAR.instance(values)
    if content is None or _place(found) != _place(known):
        return None
    found.namespace = known.namespace
    return Stored(found, Document(content, crc, length))


def _in(known: Tabular, newer: Tabular) -> Tabular:
    """The newer row with the namespace and warehouse of `known`, because its own may be from much earlier requests."""
    if newer.namespace is known.namespace:
        return newer
    found = copy(newer)
    found.namespace = known.namespace
    return found


def _place(tabular: Tabular) -> tuple[UUID, str]:
    return tabular.namespace_id, tabular.name_key


def _weight(stored: Stored) -> int:
    """Bytes of memory that a state takes, roughly."""
    opened = 0 if stored.opened is None else stored.opened.weight
    return len(stored.document.content) + len(stored.unpacked or b"") + opened


_COMMITTED: Final[LRUCache[UUID, Stored]] = LRUCache(
    _settings.kept_states_bytes // board.current().processes, getsizeof=_weight
)
_LOCK: Final = b"select 1 from tabular where id = %s for no key update"
_STATEMENT: Final = f"""
    select k.i, {TABULAR.columns}, case when d.length <= {_LARGEST} then d.content end, d.crc, d.length
    from unnest(%s::uuid[]) with ordinality as k(id, i)
    join tabular t on t.id = k.id and t.deleted_at is null join tabular_document d on d.tabular_id = t.id
"""  # noqa: S608 names of our own columns
_BASE: Final = (_STATEMENT + ACTIVE_IN_EPOCH.format(warehouse="t.warehouse_id", epoch="%s")).encode()
_BASES: Final = Coalescer(_STATEMENT)
