"""What `authorize` passes to the audit about a decision, besides what `tests/unit/authz/test_trail.py` tests."""

from dataclasses import dataclass

import pytest

from lakewarden.authz.actions import ObjectType, ProjectAction, UserAction
from lakewarden.authz.authorize import authorize, deciding
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.model import Privilege
from lakewarden.context import Allowed, Caller, PrincipalId, RequestContext
from lakewarden.errors import Forbidden, NoSuchProject, NoSuchUser

SERVER = ObjectRef(ObjectType.SERVER, "server")
PROJECT = [SERVER, ObjectRef(ObjectType.PROJECT, "p")]
MISSING = NoSuchProject("Project does not exist: p")


@dataclass(frozen=True)
class Person:
    id: str


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(caller=Caller(PrincipalId("oidc~a")), request_id="r")


def test_what_is_allowed_is_noted_in_order_with_what_decided(context: RequestContext) -> None:
    held = frozenset({Privilege.SEE, Privilege.SECURITY_ADMIN, Privilege.MANAGE_GRANTS})
    for action in (ProjectAction.READ_AUDIT, ProjectAction.GET_METADATA):
        authorize(context, "p", held, chain=PROJECT, action=action, hidden=MISSING)
    assert context.trail.allowed == [
        Allowed("read_audit", "project", "p", "p", ("security_admin",)),
        Allowed("get_metadata", "project", "p", "p", ("see",)),
    ]


def test_what_is_refused_is_not_noted_as_allowed(context: RequestContext) -> None:
    with pytest.raises(Forbidden):
        authorize(
            context, "p", frozenset({Privilege.SEE}), chain=PROJECT, action=ProjectAction.READ_AUDIT, hidden=MISSING
        )
    assert context.trail.allowed == []


def test_a_decision_about_a_user_is_about_him_and_in_no_project(context: RequestContext) -> None:
    person, missing = Person("oidc~bob"), NoSuchUser("User does not exist: oidc~bob")
    held = frozenset({Privilege.ADMIN})
    authorize(context, person, held, chain=[SERVER], action=UserAction.READ, hidden=missing)
    with pytest.raises(NoSuchUser):
        authorize(context, person, frozenset(), chain=[SERVER], action=UserAction.DELETE, hidden=missing)
    assert context.trail.allowed == [Allowed("read", "user", "oidc~bob", None, ("admin",))]
    refused = context.trail.refused
    assert refused is not None
    assert (refused.object_type, refused.object_id, refused.project_id) == ("user", "oidc~bob", None)


def test_of_several_that_would_do_all_that_are_held_are_said() -> None:
    held = frozenset({Privilege.ADMIN, Privilege.SECURITY_ADMIN, Privilege.SEE})
    assert deciding(ProjectAction.READ_AUDIT, held) == ("admin", "security_admin")
