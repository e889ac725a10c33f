"""The default authorizer: reads the ledger in PostgreSQL, usually with one query for each decision."""

from collections.abc import Sequence

from lakewarden.authz.actions import SHOWN_WITH_PROJECT, TABULAR_TYPES
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.ledger import members
from lakewarden.authz.ledger.descendant_grants import ANYTHING_OF
from lakewarden.authz.ledger.models import EVERYBODY, MANAGED_ACCESS
from lakewarden.authz.model import Level, Privilege, effective
from lakewarden.context import PrincipalId
from lakewarden.prepared_statements import fetch


class DatabaseAuthorizer:
    def privileges(self, principal: Principal, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:
        principals = [principal.id, *principal.roles]
        types, ids = [ref.type.value for ref in chain], [ref.id for ref in chain]
        granted: list[set[Privilege]] = [set() for _ in chain]
        managed: set[int] = set()
        for place, name in fetch(_GRANTED, [principals, types, ids, EVERYBODY]):
            if name == MANAGED_ACCESS:
                managed.add(place)
            else:
                granted[place].add(Privilege(name))
        levels = [Level(ref.type, granted[place], managed=place in managed) for place, ref in enumerate(chain)]
        held = effective(levels)
        if Privilege.SEE in held or chain[-1].type in TABULAR_TYPES:
            return held
        # a privilege on anything inside an object allows seeing it; whoever sees a project sees its roles and tags
        shown = -2 if chain[-1].type in SHOWN_WITH_PROJECT else -1
        path = [ref.id for ref in chain[1:]][: len(chain) + shown]
        if not path or not fetch(_ANYTHING_IN, [principals, path, path, path]):
            return held
        levels[shown] = Level(
            levels[shown].type, {*levels[shown].granted, Privilege.SEE}, managed=levels[shown].managed
        )
        return effective(levels)

    def principals(self, principal: Principal) -> Sequence[PrincipalId]:
        direct = [principal.id, *principal.roles]
        return [*direct, *members.all_above(direct)]


# `union` (not `union all`) reads each role once, even if several ways lead to it
SUBJECT = """
    with recursive principal(id) as (
        select unnest(%s::text[])
        union
        select m.role_id from authz_membership m join principal s on m.member_id = s.id
    )
"""
_GRANTED = f"""{SUBJECT}
    select c.number - 1, g.privilege from unnest(%s::text[], %s::text[]) with ordinality as c(type, id, number)
    join authz_grant g on g.object_type = c.type and g.object_id = c.id
    where g.principal_id in (select id from principal) or g.principal_id = %s
"""  # noqa: S608 text of our own
_ANYTHING_IN = f"{SUBJECT} {ANYTHING_OF}"
