"""All locations in use in a warehouse, for the check of new locations, and those that have no other row.

Tables and views (including dropped ones) and namespaces have their location in their own row. `reserved_location` has
the others: staged creations, earlier locations of objects, and locations of objects that left the catalog while their
files stayed. Files of dropped tables that wait for their removal are found by their tasks. What engines can still reach
with credentials for an object that left the catalog is in the whole server's `reachable_location`.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from lakewarden.context import PrincipalId
from lakewarden.prepared_statements import execute, fetch
from lakewarden.storage.places import around, is_in, range_below
from lakewarden.tasks import waiting_purges
from tenants.models.reachable_location import FORGET, REACHABLE, LastAccess, keeping
from tenants.models.warehouse import PLACES

MOST_FOUND = 100


class Kind(StrEnum):
    OBJECT = "object"  # a table or view, including dropped ones that can be restored
    NAMESPACE = "namespace"
    STAGED = "staged"
    EARLIER = "earlier"  # an earlier location of a table or view
    RELEASED = "released"  # the object was removed from the catalog, but its files may still be there
    PURGE = "purge"  # files are being removed, or will be without further delay
    WAITING = "waiting"  # a purge that waits for its time and can still be withdrawn
    REACHABLE = "reachable"  # engines may still have credentials for what was there


class OccupiedLocation(NamedTuple):
    """`owner` is the object's id (for a staged one: its uuid), `namespace` its namespace, `by` who staged it.

    For a released location, files changed before `at` belong to the object, and `owners` are the principals who owned
    the object (for a staged one: who staged it). A reachable one is reachable until `at`.
    """

    kind: Kind
    owner: UUID | None
    namespace: UUID | None
    location: str
    by: str
    at: datetime | None
    owners: Sequence[str]


class Released(NamedTuple):
    owner: UUID
    location: str


def overlapping(warehouse_id: UUID, location: str, *, base: str, but: UUID | None) -> list[OccupiedLocation]:
    """Everything at, in or around `location`, except the current location of the object `but`;
    limited for each type. Namespaces without a folder of their own are at `base`, the warehouse's location: not found.
    """
    at = [each for each in around(location) if is_in(each, base)]
    parameters = {"in": warehouse_id, "but": but, "at": at, "most": MOST_FOUND, **range_below(location)}
    return [OccupiedLocation(Kind(kind), *rest) for kind, *rest in fetch(_OVERLAPPING, parameters)]


def stage(
    warehouse_id: UUID,
    location: str,
    *,
    uuid: UUID,
    namespace_id: UUID,
    by: PrincipalId,
    lifetime_s: int,
    most: int,
    access: LastAccess,
) -> bool | None:
    """Reserve a location for a staged creation; engines receive `access` to it while it is open.

    False if `by` has `most` of them already, None if the namespace is gone.
    """
    parameters = {"in": warehouse_id, "location": location, "uuid": uuid, "namespace": namespace_id, "by": by}
    limits = {"lifetime": lifetime_s, "most": most}
    rows = fetch(_STAGE, {**parameters, **limits, **access.after(lifetime_s)._asdict()})
    return bool(rows[0][1]) if rows[0][0] else None


def staged_at(warehouse_id: UUID, location: str, *, namespace_id: UUID, by: PrincipalId) -> UUID | None:
    """The uuid of the creation that `by` has staged there and that has not expired."""
    rows = fetch(_STAGED_AT, [warehouse_id, location, namespace_id, by])
    return rows[0][0] if rows else None


def keep_earlier(warehouse_id: UUID, owner: UUID, namespace_id: UUID, *, before: str, now: str) -> None:
    """Keep the object's former location `before` reserved for it."""
    parameters = {"in": warehouse_id, "owner": owner, "namespace": namespace_id, "before": before, "now": now}
    execute(_KEEP_EARLIER, parameters)


def release(
    identifiers: Collection[UUID], *, owned_by: Collection[tuple[UUID, PrincipalId]], access: LastAccess
) -> list[Released]:
    """All places of tables and views that are about to be removed; they stay reserved for who may have them back.

    `owned_by` says who owns them, an entry for each owner. While engines can use `access`, nobody else may have them.
    """
    parameters = {
        "ids": list(identifiers),
        "owned": [identifier for identifier, _ in owned_by],
        "by": [principal for _, principal in owned_by],
        **access._asdict(),
    }
    return [Released(*row) for row in fetch(_RELEASE, parameters)]


def of_owners(warehouse_id: UUID, owners: Sequence[UUID]) -> list[str]:
    """The locations that these objects released."""
    return [row[0] for row in fetch(_OF_OWNERS, [warehouse_id, list(owners)])]


def hand_over(warehouse_id: UUID, owners: Sequence[UUID], *, to: UUID, but: str) -> None:
    """Make the locations that these objects released earlier locations of `to`, except `but` and those being purged."""
    execute(_HAND_OVER, {"in": warehouse_id, "owners": list(owners), "to": to, "but": but})


def forget(warehouse_id: UUID, locations: Sequence[str]) -> None:
    execute("delete from reserved_location where warehouse_id = %s and location = any(%s)", [warehouse_id, locations])


def forget_purged(owner: UUID, location: str) -> None:
    """Remove the reservation of `location`, which `owner` had released and where nothing is left."""
    execute(_FORGET_PURGED, {"owner": owner, "at": location, **range_below(location)})


def forget_reachable(owners: Sequence[UUID], locations: Sequence[str]) -> None:
    """The locations belong to these objects again, who may reach them."""
    execute(FORGET, [list(owners), list(locations)])


def reserved_around(warehouse_id: UUID, places: Sequence[str]) -> OccupiedLocation | None:
    """The innermost of `places` that is an earlier location of an object, or of a staged creation that can be ended."""
    rows = fetch(_RESERVED_AROUND, {"in": warehouse_id, "at": list(places)})
    return OccupiedLocation(Kind(rows[0][0]), *rows[0][1:]) if rows else None


class Expired(NamedTuple):
    warehouse: UUID
    location: str


def expired(*, limit: int) -> list[Expired]:
    """Expired staged creations, oldest first."""
    return [Expired(*row) for row in fetch(_EXPIRED, [limit])]


def end_staged(warehouse_id: UUID, location: str, *, is_empty: bool) -> None:
    """Remove an expired staged creation; unless it is known to be empty, its location becomes a released one."""
    execute(_END_EMPTY if is_empty else _END_WITH_FILES, [warehouse_id, location])


def foreign_to_purge(location: str, owner: UUID | None) -> str | None:
    """What a purge of `location` would destroy that does not belong to `owner`, in words; None: nothing."""
    parameters = {"owner": owner, "at": location, "around": around(location), **range_below(location)}
    rows = fetch(_FOREIGN, parameters)
    return f"the {rows[0][0]} at {rows[0][1]}" if rows else None


_ACCESS = "%(lasts)s::float as lasts, %(ends)s::timestamptz as ends"
_BELOW = "location ~>=~ %(from)s and location ~<~ %(to)s"
# expired staged creations, and those without namespace, are included: their files may exist
_RESERVED = """
    select case when r.kind = 'staged' and (r.expires_at <= now()
            or not exists (select 1 from namespace n where n.id = r.namespace_id)) then 'released' else r.kind end,
        r.owner_id, r.namespace_id, r.location, r.reserved_by,
        case r.kind when 'released' then r.created_at else now() end,
        case r.kind when 'staged' then array[r.reserved_by] else r.owners end
    from reserved_location r
    where r.warehouse_id = %(in)s
"""
_RESERVED_AROUND = f"""
    select * from ({_RESERVED} and r.location = any(%(at)s)) found(kind, owner, namespace, location, by, at, owners)
    where kind in ('staged', 'earlier') order by length(location) desc limit 1
"""  # noqa: S608 text of our own
_OBJECTS = """
    select 'object', id, namespace_id, location, '', null::timestamptz, '{}'::text[] from tabular
    where warehouse_id = %(in)s and id is distinct from %(but)s::uuid
"""
_NAMESPACES = """
    select 'namespace', id, id, location, '', null::timestamptz, '{}'::text[] from namespace
    where warehouse_id = %(in)s
"""
_PURGED = f"""
    select case when purge.can_be_withdrawn then 'waiting' else 'purge' end,
        null::uuid, null::uuid, purge.location, '', null::timestamptz, '{{}}'::text[]
    from ({waiting_purges.PLACES}) purge
"""  # noqa: S608 text of our own
_REACHABLE = f"""
    select 'reachable', reach.owner_id, null::uuid, reach.location, '', reach.until, '{{}}'::text[]
    from ({REACHABLE}) reach
"""  # noqa: S608 text of our own
# two selects for each type, so each uses its own index: with `or`, PostgreSQL reads the whole warehouse
_OVERLAPPING = f"""
    ({_OBJECTS} and location = any(%(at)s)) union all ({_OBJECTS} and {_BELOW} limit %(most)s)
    union all
    ({_RESERVED} and r.location = any(%(at)s)) union all ({_RESERVED} and {_BELOW} limit %(most)s)
    union all
    ({_NAMESPACES} and location = any(%(at)s)) union all ({_NAMESPACES} and {_BELOW} limit %(most)s)
    union all
    ({_PURGED} where purge.location = any(%(at)s))
    union all
    ({_PURGED} where purge.location ~>=~ %(from)s and purge.location ~<~ %(to)s limit %(most)s)
    union all
    ({_REACHABLE} where reach.location = any(%(at)s))
    union all
    ({_REACHABLE} where reach.location ~>=~ %(from)s and reach.location ~<~ %(to)s limit %(most)s)
"""
_STAGE = f"""
    with place as (
        select id from namespace where id = %(namespace)s and deleted_at is null
    ),
    opened as (
        select count(*) as number from reserved_location
        where namespace_id = %(namespace)s and reserved_by = %(by)s and kind = 'staged' and expires_at > now()
            and location <> %(location)s
    ),
    staged as (
        insert into reserved_location (warehouse_id, location, kind, owner_id, namespace_id, reserved_by, expires_at)
        select %(in)s::uuid, %(location)s, 'staged', %(uuid)s::uuid, place.id, %(by)s,
            now() + make_interval(secs => %(lifetime)s::int)
        from place, opened where opened.number < %(most)s
        on conflict (warehouse_id, location) do update set kind = 'staged', owner_id = excluded.owner_id,
            namespace_id = excluded.namespace_id, reserved_by = excluded.reserved_by, created_at = now(),
            expires_at = excluded.expires_at
        returning location, owner_id
    ),
    reachable as ({keeping(f"select location, owner_id, {_ACCESS} from staged")})
    select (select count(*) from place) > 0, (select count(*) from staged) > 0
"""  # noqa: S608 text of our own
_STAGED_AT = """
    select owner_id from reserved_location
    where warehouse_id = %s and location = %s and namespace_id = %s and reserved_by = %s
        and kind = 'staged' and expires_at > now()
"""
_EXPIRED = """
    select warehouse_id, location from reserved_location
    where kind = 'staged' and expires_at <= now() order by expires_at limit %s
"""
_END_EMPTY = """
    delete from reserved_location where warehouse_id = %s and location = %s and kind = 'staged' and expires_at <= now()
"""
_END_WITH_FILES = """
    update reserved_location
    set kind = 'released', owners = array[reserved_by], expires_at = null, created_at = now()
    where warehouse_id = %s and location = %s and kind = 'staged' and expires_at <= now()
"""
_KEEP_EARLIER = """
    with now_its_own as (
        delete from reserved_location
        where warehouse_id = %(in)s and location = %(now)s and kind = 'earlier' and owner_id = %(owner)s
    )
    insert into reserved_location (warehouse_id, location, kind, owner_id, namespace_id)
    values (%(in)s, %(before)s, 'earlier', %(owner)s, %(namespace)s)
    on conflict (warehouse_id, location) do update set kind = 'earlier', owner_id = excluded.owner_id,
        namespace_id = excluded.namespace_id, reserved_by = '', expires_at = null
"""
_RELEASED_WITH_ACCESS = """
    select p.location, p.owner_id, gone.lasts, gone.ends
    from places p join gone on gone.id = p.owner_id where gone.kind <> 'view'
"""  # engines have no use for the files of a view
RELEASED = f"""
    released as (
        insert into reserved_location (warehouse_id, location, kind, owner_id, namespace_id, owners)
        select warehouse_id, location, 'released', id, namespace_id, owners from gone
        on conflict (warehouse_id, location) do update set kind = 'released', owner_id = excluded.owner_id,
            created_at = now(), namespace_id = excluded.namespace_id, owners = excluded.owners, reserved_by = '',
            expires_at = null
        returning owner_id, location
    ),
    earlier as (
        update reserved_location r
        set kind = 'released', namespace_id = gone.namespace_id, owners = gone.owners, created_at = now()
        from gone where r.owner_id = gone.id and r.kind = 'earlier'
        returning r.owner_id, r.location
    ),
    places as (
        select * from released union all select * from earlier
    ),
    reachable as ({keeping(_RELEASED_WITH_ACCESS)})
"""  # noqa: S608 text of our own
"""SQL for a statement that removes tables and views: follows `gone` in its `with` list, and has their `places`."""
_RELEASE = f"""
    with gone as (
        select t.id, t.kind, t.warehouse_id, t.location, t.namespace_id, {_ACCESS},
            array(select o.by from unnest(%(owned)s::uuid[], %(by)s::text[]) as o(id, by) where o.id = t.id) as owners
        from tabular t where t.id = any(%(ids)s::uuid[])
    ),
    {RELEASED}
    select * from places
"""  # noqa: S608 text of our own
_OF_OWNERS = """
    select location from reserved_location
    where warehouse_id = %s and owner_id = any(%s::uuid[]) and kind = 'released'
"""
_HAND_OVER = f"""
    update reserved_location r set kind = 'earlier', owner_id = %(to)s
    where r.warehouse_id = %(in)s and r.owner_id = any(%(owners)s::uuid[]) and r.kind = 'released'
        and r.location <> %(but)s and not exists ({_PURGED} where purge.location = r.location)
"""  # noqa: S608 text of our own
_FORGET_PURGED = """
    delete from reserved_location where owner_id = %(owner)s and kind = 'released'
        and (location = %(at)s or (location ~>=~ %(from)s and location ~<~ %(to)s))
"""
# `limit 1` is enough: warehouses do not overlap, so at most one contains the location
_FOREIGN = f"""
    with w as (select id from ({PLACES}) w where location = any(%(around)s))
    (select 'location of the ' || replace(t.kind, '-', ' '), t.location from w join tabular t on t.warehouse_id = w.id
     where t.id is distinct from %(owner)s::uuid and t.location = any(%(around)s) limit 1)
    union all
    (select 'location of the ' || replace(t.kind, '-', ' '), t.location from w join tabular t on t.warehouse_id = w.id
     where t.id is distinct from %(owner)s::uuid and {_BELOW} limit 1)
    union all
    (select r.kind || ' location', r.location from w join reserved_location r on r.warehouse_id = w.id
     where r.owner_id is distinct from %(owner)s::uuid and r.location = any(%(around)s) limit 1)
    union all
    (select r.kind || ' location', r.location from w join reserved_location r on r.warehouse_id = w.id
     where r.owner_id is distinct from %(owner)s::uuid and {_BELOW} limit 1)
    union all
    (select 'location of the namespace', n.location from w join namespace n on n.warehouse_id = w.id
     where n.location = %(at)s or ({_BELOW}) limit 1)
    union all
    (select 'location of the warehouse', location from ({PLACES}) w where location = %(at)s or ({_BELOW}) limit 1)
    limit 1
"""  # noqa: S608 text of our own
