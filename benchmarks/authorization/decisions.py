"""What a decision costs that is not known yet: by the depth of the object and the number of the caller's roles."""

from itertools import product
from typing import TYPE_CHECKING
from uuid import uuid4

from benchmarks.authorization.filling import PROJECT, run
from benchmarks.authorization.installation import told
from benchmarks.authorization.server import InProcess, Timed

if TYPE_CHECKING:
    from lakewarden.authz.interface import ObjectRef

DEPTHS = (1, 4, 16)
ROLES = (0, 10, 1_000)
Row = tuple[int, int, Timed]
_JOIN = """
    insert into authz_membership (role_id, member_id, project_id, added_by, created_at)
    select 'role:' || md5(%(who)s || g)::uuid, %(who)s, %(project)s, 'oidc~admin', now()
    from generate_series(1, %(roles)s::int) g
"""


def measure(server: InProcess, *, rounds: int) -> tuple[list[Row], list[Row]]:
    """Rows of (namespaces above the table, roles, cost): for who may by the project, and for who may nothing."""
    from lakewarden import backends  # noqa: PLC0415 needs settings
    from lakewarden.authz.interface import Principal  # noqa: PLC0415 as above
    from lakewarden.authz.ledger import grants  # noqa: PLC0415 as above
    from lakewarden.authz.model import Privilege  # noqa: PLC0415 as above
    from lakewarden.context import PrincipalId  # noqa: PLC0415 as above

    authorizer = backends.authorizer()
    found: tuple[list[Row], list[Row]] = ([], [])
    for roles in ROLES:
        allowed, nobody = PrincipalId(f"oidc~in-{roles}"), PrincipalId(f"oidc~nobody-in-{roles}")
        for who in (allowed, nobody):
            run(server.url, _JOIN, {"who": who, "roles": roles, "project": PROJECT})
        grants.give(_chain(1)[:2], [(allowed, Privilege.SELECT)], granted_by=allowed)
    told()
    for depth, roles in product(DEPTHS, ROLES):
        chain = _chain(depth)
        for rows, name, end in ((found[0], "in", None), (found[1], "nobody-in", -1)):
            principal = Principal(PrincipalId(f"oidc~{name}-{roles}"))
            asked = [lambda s=principal, e=end, c=chain: authorizer.privileges(s, c[:e])] * rounds
            rows.append((depth, roles, server.spent(asked, warm_up=10)))
    return found


def _chain(depth: int) -> "list[ObjectRef]":
    """A table in so many namespaces."""
    from lakewarden.authz.actions import ObjectType  # noqa: PLC0415 as above
    from lakewarden.authz.interface import ObjectRef  # noqa: PLC0415 as above

    above = [ObjectRef(ObjectType.SERVER, "server"), ObjectRef(ObjectType.PROJECT, PROJECT)]
    above += [ObjectRef(ObjectType.WAREHOUSE, str(uuid4()))]
    between = [ObjectRef(ObjectType.NAMESPACE, str(uuid4())) for _ in range(depth)]
    return [*above, *between, ObjectRef(ObjectType.TABLE, str(uuid4()))]


_HOLDERS = """
    insert into authz_grant (principal_id, object_type, object_id, privilege, project_id, ancestors, granted_by,
                             created_at)
    select 'oidc~holder-' || g, 'warehouse', %(warehouse)s, 'select', %(project)s, array[%(project)s], 'oidc~admin',
           now()
    from generate_series(1, %(holders)s::int) g
"""
HOLDERS = 10_000


def crowded(server: InProcess, *, rounds: int) -> Timed:
    """A decision on a table in a warehouse on which 10,000 users have a right each; the caller is one of them."""
    from lakewarden import backends  # noqa: PLC0415 needs settings
    from lakewarden.authz.interface import Principal  # noqa: PLC0415 as above
    from lakewarden.context import PrincipalId  # noqa: PLC0415 as above

    chain, authorizer = _chain(1), backends.authorizer()
    run(server.url, _HOLDERS, {"warehouse": chain[2].id, "holders": HOLDERS, "project": PROJECT})
    told()
    principal = Principal(PrincipalId("oidc~holder-77"))
    return server.spent([lambda: authorizer.privileges(principal, chain)] * rounds, warm_up=10)
