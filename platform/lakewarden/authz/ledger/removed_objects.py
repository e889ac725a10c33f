"""Removes the grants on objects that a statement removes, and raises epochs only where a decision may change by that.

A decision about a removed object is never asked for again: ids are not used twice. A grant on it also made what it lies
in visible to its holder. If they own its place, or have a grant on something else in there, that stays so (see
`database.DatabaseAuthorizer`), and everybody's cached decisions stay right.
"""

from typing import Final

from lakewarden.authz.ledger import change_log, epochs
from lakewarden.authz.model import Privilege

REMOVED: Final = f"""
    going_grants as materialized (
        select r.* from going join authz_grant r on r.object_type = going.kind and r.object_id = going.id::text
    ),
    lonely as materialized (
        select had.project_id
        from (select distinct project_id, principal_id, ancestors from going_grants) had
        left join lateral (
            select o.id from authz_grant o
            where o.principal_id = had.principal_id and o.object_id = had.ancestors[cardinality(had.ancestors)]
                and o.privilege = '{Privilege.OWNERSHIP.value}'
            limit 1 for key share of o skip locked
        ) above on true
        left join lateral (
            select o.ancestors from authz_grant o
            where above.id is null and o.principal_id = had.principal_id and o.ancestors >= had.ancestors
                and o.object_id not in (select id::text from going)
            order by o.ancestors limit 1 for key share of o skip locked
        ) beside on true
        where above.id is null
            and beside.ancestors[:cardinality(had.ancestors)] is distinct from had.ancestors
    ),
    raised as ({epochs.raised_in("select project_id from lonely")}),
    taken_away as (
        delete from authz_grant r using going_grants g where r.id = g.id returning r.*
    ),
    forgotten as ({change_log.of_grants("delete", "taken_away")})
"""  # noqa: S608 text of our own
"""Follows `going`, with the columns id and kind, in a `with` list that has `epochs.HELD` before it.

The grants that keep a place visible are locked: another statement that removes them at the same time does not count on
those that are removed here. It is executed with `logged`, and `change_log.tell` follows it.
"""
