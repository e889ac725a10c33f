"""What `authorize` notes for those who count and audit a request."""

import pytest

from lakewarden.authz.actions import ObjectType, WarehouseAction
from lakewarden.authz.authorize import authorize
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.model import Privilege
from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.errors import Forbidden, NoSuchWarehouse

CHAIN = [
    ObjectRef(ObjectType.SERVER, "server"),
    ObjectRef(ObjectType.PROJECT, "p"),
    ObjectRef(ObjectType.WAREHOUSE, "w"),
]
MISSING = NoSuchWarehouse("Warehouse does not exist: w")


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(caller=Caller(PrincipalId("oidc~a")), request_id="r")


def _ask(context: RequestContext, *held: Privilege, chain: list[ObjectRef] = CHAIN) -> None:
    authorize(context, "w", frozenset(held), chain=chain, action=WarehouseAction.DELETE, hidden=MISSING)


def test_an_allowed_request_notes_where_it_led(context: RequestContext) -> None:
    _ask(context, *Privilege)
    assert (context.trail.project_id, context.trail.warehouse_id, context.trail.refused) == ("p", "w", None)


def test_the_first_object_of_a_project_counts(context: RequestContext) -> None:
    _ask(context, *Privilege, chain=CHAIN[:1])
    assert not context.trail.project_id
    _ask(context, *Privilege)
    other = [CHAIN[0], ObjectRef(ObjectType.PROJECT, "q"), ObjectRef(ObjectType.WAREHOUSE, "v")]
    _ask(context, *Privilege, chain=other)
    assert (context.trail.project_id, context.trail.warehouse_id) == ("p", "w")


@pytest.mark.parametrize(
    ("held", "error", "hidden"), [(Privilege.SEE, Forbidden, False), (Privilege.OPERATOR, NoSuchWarehouse, True)]
)
def test_a_refusal_is_noted_with_its_object(
    context: RequestContext, held: Privilege, error: type[Exception], *, hidden: bool
) -> None:
    with pytest.raises(error):
        _ask(context, held)
    refused = context.trail.refused
    assert refused is not None
    assert (refused.action, refused.object_type, refused.object_id, refused.project_id) == (
        "delete",
        "warehouse",
        "w",
        "p",
    )
    assert refused.reason.startswith("Not allowed: delete on this warehouse needs the privilege")
    assert refused.reason.endswith("answered as not found") is hidden
