"""A small world of objects, and words for who holds what in it; for all tests of authorizers."""

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.interface import Authorizer, ObjectRef, Principal
from lakewarden.authz.ledger import grants
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId, role_principal

ALICE, BOB, ADMIN = (PrincipalId(f"oidc~{name}") for name in ("alice", "bob", "admin"))
ANALYSTS, STAFF, EVERYONE = (role_principal(name) for name in ("analysts", "staff", "everyone"))
SERVER = [ObjectRef(ObjectType.SERVER, "server")]
PROJECT = [*SERVER, ObjectRef(ObjectType.PROJECT, "p")]
WAREHOUSE = [*PROJECT, ObjectRef(ObjectType.WAREHOUSE, "w")]
SALES = [*WAREHOUSE, ObjectRef(ObjectType.NAMESPACE, "sales")]
EUROPE = [*SALES, ObjectRef(ObjectType.NAMESPACE, "europe")]
ORDERS = [*EUROPE, ObjectRef(ObjectType.TABLE, "orders")]
REPORT = [*EUROPE, ObjectRef(ObjectType.VIEW, "report")]
IMAGES = [*EUROPE, ObjectRef(ObjectType.GENERIC_TABLE, "images")]
ARCHIVE = [*WAREHOUSE, ObjectRef(ObjectType.NAMESPACE, "archive")]
TAG = [*PROJECT, ObjectRef(ObjectType.TAG_DEFINITION, "pii")]
ROLE = [*PROJECT, ObjectRef(ObjectType.ROLE, "analysts")]


def give(chain: list[ObjectRef], principal: PrincipalId, *privileges: Privilege) -> None:
    grants.give(chain, [(principal, privilege) for privilege in privileges], granted_by=ADMIN)


def take(chain: list[ObjectRef], principal: PrincipalId, *privileges: Privilege) -> int:
    return grants.remove(chain[-1], [(principal, privilege) for privilege in privileges])


def held(
    authorizer: Authorizer, chain: list[ObjectRef], principal: PrincipalId = ALICE, *roles: PrincipalId
) -> frozenset[Privilege]:
    return authorizer.privileges(Principal(principal, roles), chain)
