"""Reads the log of events by position, as far as the caller may see the objects; `GET /events`.

What a request costs is bounded: the positions that it looks at, and the objects on which it decides. A page may
therefore be empty although there is more: the next one goes on from where this one ended.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from catalog import access as catalog_access
from catalog.models import Namespace, Tabular
from lakewarden import config
from lakewarden.authz.actions import TABULAR_TYPES, NamespaceAction, ObjectType, ProjectAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.model import is_allowed
from lakewarden.context import RequestContext
from lakewarden.events import log
from lakewarden.events.log import Event
from lakewarden.events.types import RIGHTS
from tenants import access as tenants_access
from tenants.models import Project, Server, Warehouse

_TABULARS: Final = frozenset(kind.value for kind in TABULAR_TYPES)
_IN_WAREHOUSES: Final = _TABULARS | {ObjectType.WAREHOUSE.value, ObjectType.NAMESPACE.value}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Empty: any. `since` only counts where no position is given."""

    types: Sequence[str] = ()
    object_type: str = ""
    object_id: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """`position` is where the next page begins; `more`: there may be more at once."""

    events: list[Event]
    position: int
    more: bool


def of_server(granted: Granted[Server], wanted: Wanted, *, after: int | None, limit: int) -> Found:  # noqa: ARG001 the decision
    """All events, also those of no project."""
    return _scan(wanted, after=after, limit=limit, projects=())


def of_project(granted: Granted[Project], wanted: Wanted, *, after: int | None, limit: int) -> Found:
    """All events of the project for those who read its audit; for others, events of what they see now."""
    found = _scan(wanted, after=after, limit=limit, projects=[granted.target.id])
    if granted.allows(ProjectAction.READ_AUDIT):
        return found
    decided = _decidable(found.events, most=config.current().events.decisions_of_one_request)
    shown = _visible(granted.context, decided)
    if len(decided) < len(found.events):
        return Found(shown, decided[-1].position, more=True)
    return Found(shown, found.position, more=found.more)


def _scan(wanted: Wanted, *, after: int | None, limit: int, projects: Sequence[str]) -> Found:
    if after is None:
        after = log.first_position() - 1 if wanted.since is None else log.position_before(wanted.since)
    end = log.last_position()
    up_to = min(end, after + config.current().events.positions_of_one_request)
    events = log.read(
        after=after,
        up_to=up_to,
        limit=limit,
        types=wanted.types,
        projects=projects,
        object_type=wanted.object_type,
        object_id=wanted.object_id,
    )
    position = events[-1].position if len(events) == limit else max(up_to, after)
    return Found(events, position, more=position < end)


def _decidable(events: Sequence[Event], *, most: int) -> list[Event]:
    """The first events, as far as they are about at most so many objects."""
    objects: set[tuple[str, str]] = set()
    for number, each in enumerate(events):
        objects.add((each.object_type, each.object_id))
        if len(objects) > most:
            return list(events[:number])
    return list(events)


def _visible(context: RequestContext, events: Sequence[Event]) -> list[Event]:
    # what a role, a tag definition or a grant is about may be hidden: the audit has those
    known = [each for each in events if each.object_type in _IN_WAREHOUSES and each.type not in RIGHTS]
    whole = _warehouses_seen(context, {_warehouse_of(each) for each in known})
    others = [each for each in known if _warehouse_of(each) not in whole]
    seen = _tabulars_seen(context, others) | _namespaces_seen(context, others)
    return [each for each in known if _warehouse_of(each) in whole or _shows(seen.get(each.object_id), each)]


@dataclass(frozen=True, slots=True)
class _Seen:
    """An object that the caller sees: where it is now, and since when it exists."""

    warehouse: str
    path: list[str]
    since: datetime


def _shows(seen: _Seen | None, event: Event) -> bool:
    """Not what names a place where it was before, and nothing of an earlier object with its id: both may be hidden."""
    return (
        seen is not None
        and seen.warehouse == _warehouse_of(event)
        and event.data.get("namespace") == seen.path
        and event.time >= seen.since
        and not event.type.startswith(("rename", "move"))
    )


def _warehouse_of(event: Event) -> str:
    own = event.object_id if event.object_type == ObjectType.WAREHOUSE.value else ""
    return str(event.data.get("warehouse-id", own))


def _warehouses_seen(context: RequestContext, ids: Iterable[str]) -> set[str]:
    """Those in which the caller sees everything."""
    rows = Warehouse.objects.select_related("project").filter(id__in=_uuids(ids))
    return {
        str(each.id)
        for each in rows
        if is_allowed(
            WarehouseAction.LIST_EVERYTHING,
            tenants_access.privileges(context, chain=tenants_access.warehouse_chain(each), project=each.project),
        )
    }


def _tabulars_seen(context: RequestContext, events: Iterable[Event]) -> dict[str, _Seen]:
    ids = _uuids(each.object_id for each in events if each.object_type in _TABULARS)
    warehouses = _uuids(map(_warehouse_of, events))
    rows = Tabular.objects.placed().filter(uuid__in=ids, warehouse_id__in=warehouses) if ids else ()
    return {
        str(each.uuid): _Seen(str(each.warehouse_id), each.namespace.path, each.created_at)
        for each in rows
        if catalog_access.may_see(context, each)
    }


def _namespaces_seen(context: RequestContext, events: Iterable[Event]) -> dict[str, _Seen]:
    ids = _uuids(each.object_id for each in events if each.object_type == ObjectType.NAMESPACE.value)
    rows = Namespace.objects.placed().filter(id__in=ids) if ids else ()
    return {
        str(each.id): _Seen(str(each.warehouse_id), each.path, each.created_at)
        for each in rows
        if is_allowed(
            NamespaceAction.GET_METADATA,
            tenants_access.privileges(
                context, chain=catalog_access.namespace_chain(each), project=each.warehouse.project
            ),
        )
    }


def _uuids(texts: Iterable[str]) -> set[UUID]:
    found: set[UUID] = set()
    for each in texts:
        try:
            found.add(UUID(each))
        except ValueError:
            continue
    return found
