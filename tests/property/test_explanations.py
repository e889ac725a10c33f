"""Random ledgers in the database: an explanation says what the authorizer says, and who-may lists who is explained."""

from collections.abc import Iterator

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakewarden.authz.actions import ACTIONS, ObjectType
from lakewarden.authz.database import DatabaseAuthorizer
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.ledger import grants, members
from lakewarden.authz.model import GRANTABLE, is_allowed
from lakewarden.context import PrincipalId, role_principal
from lakewarden.paging import Page
from permissions import explanations, public_ids
from tenants import access
from tests.installation import database, database_url, django_db_setup  # noqa: F401 fixtures

SYSTEM = PrincipalId("oidc~admin")
USERS = [PrincipalId(f"oidc~u{number}") for number in range(3)]
ROLES = [role_principal(f"0197f1c2-0000-7000-8000-00000000000{number}") for number in range(3)]
PROJECT = [access.SERVER, ObjectRef(ObjectType.PROJECT, "p")]
WAREHOUSE = [*PROJECT, ObjectRef(ObjectType.WAREHOUSE, "w")]
OUTER = [*WAREHOUSE, ObjectRef(ObjectType.NAMESPACE, "outer")]
INNER = [*OUTER, ObjectRef(ObjectType.NAMESPACE, "inner")]
CHAINS = [
    [access.SERVER],
    PROJECT,
    [*PROJECT, ObjectRef(ObjectType.ROLE, "0197f1c2-0000-7000-8000-000000000000")],
    WAREHOUSE,
    OUTER,
    INNER,
    [*INNER, ObjectRef(ObjectType.TABLE, "t")],
    [*OUTER, ObjectRef(ObjectType.VIEW, "v")],
]
EVERYTHING = Page(None, None)

given_rights = st.lists(
    st.sampled_from(CHAINS).flatmap(
        lambda chain: st.tuples(
            st.just(chain), st.sampled_from([*USERS, *ROLES]), st.sampled_from(sorted(GRANTABLE[chain[-1].type]))
        )
    ),
    min_size=1,
    max_size=7,
)
memberships = st.lists(st.tuples(st.sampled_from(ROLES), st.sampled_from([*USERS, *ROLES])), max_size=5)


@pytest.fixture
def ledger(database: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # noqa: F811
    # the ledger is asked about objects that no app has
    monkeypatch.setattr(public_ids, "known", lambda refs: {ref: ref for ref in refs})
    yield
    connection.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rights=given_rights,
    edges=memberships,
    managed=st.lists(st.sampled_from([WAREHOUSE, OUTER, INNER]), max_size=1),
    pick=st.integers(0, 100),
)
def test_explanations_agree_with_the_authorizer(
    ledger: None,
    rights: list[tuple[list[ObjectRef], PrincipalId, str]],
    edges: list[tuple[PrincipalId, PrincipalId]],
    managed: list[list[ObjectRef]],
    pick: int,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("truncate authz_grant, authz_membership")
    for chain, principal, privilege in rights:
        grants.give(chain, [(principal, privilege)], granted_by=SYSTEM)  # type: ignore[list-item]
    for role, member in edges:
        if member not in ROLES or role < member:  # no cycles
            members.add(role, [member], project_id="p", added_by=SYSTEM)
    for chain in managed:
        grants.set_managed(chain, managed=True, set_by=SYSTEM)
    authorizer = DatabaseAuthorizer()
    for chain in CHAINS:
        known = ACTIONS[chain[-1].type]
        action = known[pick % len(known)]
        may = set()
        for principal in (*USERS, *ROLES):
            expected = is_allowed(action, authorizer.privileges(access.principal_of(principal), chain))
            assert explanations.of_principal(principal, chain, action).explanation.allowed is expected
            may |= {principal} if expected else set()
        holders, _ = explanations.who_may(chain, action, EVERYTHING, expand=True)
        assert {holder.principal for holder in holders} == may
