"""Random additions to and removals from roles against a dictionary: what is refused, and who is in what."""

from collections.abc import Iterator

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakewarden import config
from lakewarden.authz.actions import ProjectAction, RoleAction
from lakewarden.authz.ledger import members as ledger
from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.paging import Page
from tenants import access
from tenants.models import Role
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import role_members, roles, users
from tenants.services.role_members import RoleMembershipCycle, RoleMembershipDepthExceeded
from tests.installation import admin_context, database, database_url, django_db_setup  # noqa: F401 fixtures

LIMIT = 3
ROLES = [f"r{number}" for number in range(5)]
USERS = ["u0", "u1"]
Graph = dict[str, set[str]]

steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "remove"]),
        st.sampled_from(ROLES),
        st.lists(st.sampled_from([*ROLES, *ROLES, *USERS]), min_size=1, max_size=2, unique=True),
    ),
    min_size=8,
    max_size=25,
)


class Principals(dict[str, PrincipalId]):
    """The roles and users of the model as they are in the database."""

    def __init__(self, context: RequestContext) -> None:
        project = access.project(context, DEFAULT_PROJECT_ID, ProjectAction.CREATE_ROLE)
        made = {name: roles.create(project, name, description=None, source=None) for name in ROLES}
        known = {name: users.register(Caller(PrincipalId(f"oidc~{name}")), context)[0] for name in USERS}
        super().__init__({name: role.principal for name, role in made.items()})
        self.update({name: PrincipalId(user.id) for name, user in known.items()})
        self.names = {principal: name for name, principal in self.items()}


@pytest.fixture
def principals(database: None, admin_context: RequestContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[Principals]:  # noqa: F811
    from lakewarden.authz.decision_cache import HELD_PRIVILEGES  # noqa: PLC0415
    from tenants.services import servers  # noqa: PLC0415

    HELD_PRIVILEGES.clear()
    limited = config.current().model_copy(update={"roles": config.RolesConfig(max_nesting_depth=LIMIT)})
    monkeypatch.setattr(config, "current", lambda: limited)
    servers.bootstrap(admin_context.caller, admin_context)
    yield Principals(admin_context)
    connection.close()


def below(graph: Graph, start: str) -> set[str]:
    """Everything that can be reached from `start`."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for member in graph.get(waiting.pop(), set()) - reached:
            reached.add(member)
            waiting.append(member)
    return reached


def turned(graph: Graph) -> Graph:
    """The same edges the other way."""
    return {name: {role for role, there in graph.items() if name in there} for name in (*ROLES, *USERS)}


def longest(graph: Graph, start: str) -> int:
    """The longest chain of roles downward, `start` counted."""
    return 1 + max((longest(graph, member) for member in graph.get(start, set()) if member in ROLES), default=0)


def expected(graph: Graph, role: str, added: list[str]) -> type[Exception] | None:
    """The refusal of an addition, by the graph that it would make."""
    new = [name for name in added if name in ROLES and name not in graph[role]]
    if any(name == role or role in below(graph, name) for name in new):
        return RoleMembershipCycle
    height = longest(turned(graph), role)
    if any(height + longest(graph, name) > LIMIT for name in new):
        return RoleMembershipDepthExceeded
    return None


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_members_and_refusals_are_those_of_a_plain_graph(
    principals: Principals,
    admin_context: RequestContext,  # noqa: F811
    steps: list[tuple[str, str, list[str]]],
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("truncate authz_membership")
    graph: Graph = {name: set() for name in ROLES}
    granted = {
        name: access.role(
            admin_context,
            str(role_members.role_id(principals[name])),
            RoleAction.MANAGE_ASSIGNMENTS,
            project_id=DEFAULT_PROJECT_ID,
        )
        for name in ROLES
    }
    for verb, role, names in steps:
        if verb == "remove":
            for name in names:
                role_members.remove(granted[role], principals[name])
            graph[role] -= set(names)
            continue
        refusal = expected(graph, role, names)
        if refusal is None:
            role_members.add(granted[role], [principals[name] for name in names])
            graph[role] |= set(names)
        else:
            with pytest.raises(refusal):
                role_members.add(granted[role], [principals[name] for name in names])
    _ensure_same(principals, graph)


def _ensure_same(principals: Principals, graph: Graph) -> None:
    for name in ROLES:
        assert {principals.names[each] for each in ledger.of_role(principals[name])} == graph[name]
        assert {principals.names[each] for each in ledger.all_below(principals[name])} == below(graph, name)
    up = turned(graph)
    everything = Page(None, None)
    for name in USERS:
        context = RequestContext(caller=Caller(principals[name]), request_id="arranged-by-a-test")
        for transitive, roles_of_user in ((False, up[name]), (True, below(up, name))):
            found, _ = role_members.own_roles(context, everything, project_id=DEFAULT_PROJECT_ID, transitive=transitive)
            assert [role.name for role in found] == sorted(roles_of_user)
    assert Role.objects.count() == len(ROLES)
