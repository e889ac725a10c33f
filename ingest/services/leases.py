"""Limits of sockets that hold on all servers together: a lease for each, which its server renews."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ingest.services.statements import run
from lakewarden import config
from lakewarden.hot.sessions import Lookup
from lakewarden.ids import new_id
from tenants.models.warehouse import OF_ITS_PROJECT

SERVER: Final = new_id()
"""This process since its start."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How many sockets there are, with this one; `of_caller`: in the warehouse."""

    of_address: int
    of_source: int
    of_caller: int
    of_warehouse: int
    of_project: int


async def take(identifier: UUID, warehouse_id: UUID, *, address: str, principal: str, source_id: str) -> Counted:
    """Note a socket, and count those that are open; the caller gives it back if they are too many.

    It is noted first: of two that take the last place at the same time, at least one sees the other. Empty
    `source_id`: it is not known yet; once it is, the same socket is noted again. Raises LogUnavailable.
    """
    given: list[list[object]] = [
        [identifier], [warehouse_id], [SERVER], [address], [principal], [source_id], [_length_ms()],
    ]  # fmt: skip
    await run(_NOTE, given)
    ((*counts,),) = await run(_COUNT, [[warehouse_id], [address], [principal], [source_id]])
    return Counted(*counts)


async def give_back(identifier: UUID) -> None:
    """Raises LogUnavailable."""
    await run(_GIVE_BACK, [[identifier]])


async def renew() -> None:
    """Extend all of this process, and remove those of dead ones. Raises LogUnavailable."""
    await run(_RENEW, [[SERVER], [_length_ms()]])


async def count(warehouse_id: UUID) -> int:
    """The sockets of a warehouse. Raises LogUnavailable."""
    ((found,),) = await run(_CONNECTED, [[warehouse_id]])
    return int(found)


def _length_ms() -> int:
    return int(config.current().ingest.lease_s * 1000)


_UNTIL: Final = "now() + {milliseconds} * interval '1 millisecond'"
_NOTE: Final = Lookup(f"""
    insert into ingest_connection (id, warehouse_id, server, address, principal, source_id, until)
    select g.id, g.warehouse_id, g.server, g.address, g.principal, g.source_id,
           {_UNTIL.format(milliseconds="g.length")}
    from unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::text[], %s::text[], %s::text[], %s::bigint[])
        as g(id, warehouse_id, server, address, principal, source_id, length)
    on conflict (id) do update set source_id = excluded.source_id, until = excluded.until
""")  # noqa: S608 text of our own
_COUNT: Final = Lookup(f"""
    select (select count(*) from ingest_connection c where c.address = g.address and c.until > now()),
           (select count(*) from ingest_connection c
            where c.warehouse_id = g.warehouse_id and c.principal = g.principal and c.source_id = g.source_id
              and c.until > now()),
           (select count(*) from ingest_connection c
            where c.warehouse_id = g.warehouse_id and c.principal = g.principal and c.until > now()),
           (select count(*) from ingest_connection c where c.warehouse_id = g.warehouse_id and c.until > now()),
           (select count(*) from ingest_connection c
            where c.warehouse_id in ({OF_ITS_PROJECT.format(warehouse="g.warehouse_id")}) and c.until > now())
    from unnest(%s::uuid[], %s::text[], %s::text[], %s::text[]) as g(warehouse_id, address, principal, source_id)
""")  # noqa: S608 text of our own
_GIVE_BACK: Final = Lookup("delete from ingest_connection where id = (%s::uuid[])[1]")
_RENEW: Final = Lookup(f"""
    with given as (select (%s::uuid[])[1] as server, (%s::bigint[])[1] as length),
    gone as (delete from ingest_connection where until < now() - interval '1 minute')
    update ingest_connection c set until = {_UNTIL.format(milliseconds="g.length")}
    from given g where c.server = g.server
""")  # noqa: S608 text of our own
_CONNECTED: Final = Lookup("""
    select count(*) from unnest(%s::uuid[]) as k(id) join ingest_connection c on c.warehouse_id = k.id
    where c.until > now()
""")
