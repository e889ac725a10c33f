"""The default authorizer: reads the ledger in our own Postgres, one query a decision."""

from collections.abc import Sequence

from lakewarden.authz.interface import ObjectRef, Subject
from lakewarden.authz.model import Privilege, effective
from lakewarden.prepared import fetch


class DatabaseAuthorizer:
    def privileges(self, subject: Subject, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:
        types, ids = [ref.type.value for ref in chain], [ref.id for ref in chain]
        rows = fetch(_GRANTED, [[subject.principal, *subject.roles], types, ids])
        granted: dict[str, set[Privilege]] = {}
        for identifier, name in rows:
            granted.setdefault(identifier, set()).add(Privilege(name))
        return effective([(ref.type, granted.get(ref.id, ())) for ref in chain])


# `union` ends where a role was reached before: nested roles are no loop, but may meet again
_GRANTED = """
    with recursive subject(id) as (
        select unnest(%s::text[])
        union
        select m.role_id from authz_membership m join subject s on m.member_id = s.id
    )
    select c.id, g.privilege from unnest(%s::text[], %s::text[]) as c(type, id)
    join authz_grant g on g.object_type = c.type and g.object_id = c.id
    where g.principal_id in (select id from subject)
"""
