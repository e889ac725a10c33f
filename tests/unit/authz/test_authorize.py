from collections.abc import Sequence

import pytest

from lakewarden.authz.actions import ObjectType, TableAction
from lakewarden.authz.authorize import authorize, held
from lakewarden.authz.decision_cache import HELD_PRIVILEGES, DecisionCache, Epoch
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.model import Level, Privilege, effective
from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.errors import Forbidden, NoSuchTable

CHAIN = [ObjectRef(ObjectType.SERVER, "server"), ObjectRef(ObjectType.TABLE, "t")]
ALICE = RequestContext(Caller(PrincipalId("oidc~alice")), "1")
HIDDEN = NoSuchTable("Table does not exist: sales.orders")


class Authorizer:
    """Alice holds `held`; counts how often it is asked."""

    def __init__(self, *held: Privilege) -> None:
        self.held = held
        self.asked = 0

    def privileges(self, principal: Principal, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:
        assert (principal, list(chain)) == (Principal(ALICE.caller.id), CHAIN)
        self.asked += 1
        return effective([Level(ObjectType.TABLE, self.held)])

    def principals(self, principal: Principal) -> Sequence[PrincipalId]:
        raise NotImplementedError


def ask(authorizer: Authorizer, action: TableAction, epoch: Epoch | None = None) -> frozenset[Privilege]:
    found = held(authorizer, ALICE, principal=lambda: Principal(ALICE.caller.id), chain=CHAIN, epoch=epoch)
    granted = authorize(ALICE, "the table", found, chain=CHAIN, action=action, hidden=HIDDEN)
    assert (granted.target, granted.context) == ("the table", ALICE)
    return granted.privileges


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    HELD_PRIVILEGES.clear()


def test_what_is_held_is_granted_with_all_that_it_implies() -> None:
    assert ask(Authorizer(Privilege.WRITE), TableAction.COMMIT) == {
        Privilege.WRITE,
        Privilege.SELECT,
        Privilege.DESCRIBE,
        Privilege.SEE,
    }


def test_who_sees_the_object_is_told_that_he_may_not() -> None:
    with pytest.raises(Forbidden, match="drop on this table needs the privilege modify"):
        ask(Authorizer(Privilege.WRITE), TableAction.DROP)


def test_who_does_not_see_it_is_told_that_there_is_none() -> None:
    with pytest.raises(NoSuchTable) as caught:
        ask(Authorizer(), TableAction.DROP)
    assert caught.value is HIDDEN


def test_what_is_known_is_asked_once_an_epoch() -> None:
    authorizer = Authorizer(Privilege.SELECT)
    for _ in range(3):
        ask(authorizer, TableAction.READ_DATA, Epoch("p", 1))
    assert authorizer.asked == 1
    authorizer.held = ()
    ask(authorizer, TableAction.READ_DATA, Epoch("p", 1))
    with pytest.raises(NoSuchTable):
        ask(authorizer, TableAction.READ_DATA, Epoch("p", 2))
    assert authorizer.asked == 2


def test_without_an_epoch_nothing_is_kept() -> None:
    authorizer = Authorizer(Privilege.SELECT)
    for _ in range(3):
        ask(authorizer, TableAction.READ_DATA)
    assert authorizer.asked == 3


def test_no_more_is_kept_than_there_is_room_for() -> None:
    known: DecisionCache[frozenset[Privilege]] = DecisionCache(capacity=2)
    for name in "abc":
        known.keep(ALICE.caller.key, name, Epoch("p", 1), frozenset())
    assert [known.find(ALICE.caller.key, name, Epoch("p", 1)) for name in "abc"] == [None, frozenset(), frozenset()]
