"""Explanations against the model: the same answer on random rights, and chains that hold when they are replayed."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.authz.actions import (
    ACTIONS,
    Action,
    NamespaceAction,
    ObjectType,
    ProjectAction,
    RoleAction,
    TableAction,
)
from lakewarden.authz.explanation import (
    Explanation,
    Facts,
    Given,
    Path,
    Reason,
    Step,
    explain,
    is_helped_from_below,
    reach,
    shown,
)
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.model import GRANTABLE, INHERITED, Level, Privilege, effective, implications, is_allowed
from lakewarden.context import PrincipalId

SERVER, PROJECT, ROLE, TAG, WAREHOUSE, OUTER, INNER, TABLE, VIEW = (
    ObjectRef(ObjectType(kind), name)
    for kind, name in (
        ("server", "server"),
        ("project", "p"),
        ("role", "r"),
        ("tag-definition", "d"),
        ("warehouse", "w"),
        ("namespace", "outer"),
        ("namespace", "inner"),
        ("table", "t"),
        ("view", "v"),
    )
)
_ABOVE = (SERVER, PROJECT, WAREHOUSE, OUTER, INNER)
CHAINS = [
    *(_ABOVE[: size + 1] for size in range(len(_ABOVE))),
    (SERVER, PROJECT, ROLE),
    (SERVER, PROJECT, TAG),
    (*_ABOVE, TABLE),
    (*_ABOVE, VIEW),
]
ALICE, ADMIN = PrincipalId("oidc~alice"), PrincipalId("oidc~admin")
ROLES = [PrincipalId(f"role:{number}") for number in range(4)]
PRINCIPALS = [ALICE, *ROLES]
P = Privilege


def given_on(ref: ObjectRef, privilege: Privilege, principal: PrincipalId = ALICE) -> Given:
    return Given(ref, principal, privilege, ADMIN)


def facts_of(chain: Sequence[ObjectRef], *grants: Given, managed: Sequence[ObjectRef] = ()) -> Facts:
    """Grants on any objects: those that are not in the chain are below its last object."""
    granted: dict[PrincipalId, list[Given]] = {}
    below: dict[PrincipalId, Given] = {}
    for each in grants:
        if each.ref in chain:
            granted.setdefault(each.principal, []).append(each)
        elif shown(chain) is not None:
            below.setdefault(each.principal, each)
    return Facts(tuple(chain), granted, below, frozenset(managed))


def held(facts: Facts, reached: Mapping[PrincipalId, Path]) -> frozenset[Privilege]:
    """As an authorizer finds it out, by the model's own closure."""
    mine = [each for principal in reached for each in facts.granted.get(principal, ())]

    def levels(extra: ObjectRef | None) -> list[Level]:
        return [
            Level(
                ref.type,
                {*(each.privilege for each in mine if each.ref == ref), *({P.SEE} if ref == extra else ())},
                managed=ref in facts.managed,
            )
            for ref in facts.chain
        ]

    found = effective(levels(None))
    is_shown = not reached.keys().isdisjoint(facts.below)
    return found if P.SEE in found or not is_shown else effective(levels(shown(facts.chain)))


def replay(reason: Reason, facts: Facts, roles_of: Mapping[PrincipalId, Sequence[PrincipalId]]) -> None:
    """Fails when a step of the chain does not follow from the one before."""
    for member, role in zip((ALICE, *reason.through), reason.through, strict=False):
        assert role in roles_of[member]
    assert reason.grant.principal == (reason.through[-1] if reason.through else ALICE)
    privilege, ref = reason.grant.privilege, reason.grant.ref
    for step in reason.then:
        if ref not in facts.chain:
            assert step == Step(P.SEE, shown(facts.chain))  # type: ignore[arg-type]
        else:
            place = facts.chain.index(ref)
            managed = any(each in facts.managed for each in facts.chain[: place + 1])
            implied = step.ref == ref and step.privilege in implications(ref.type, managed=managed).get(privilege, ())
            is_next = step.ref in facts.chain[place + 1 : place + 2]
            assert implied or (is_next and INHERITED[step.ref.type].get(privilege) is step.privilege)
        privilege, ref = step.privilege, step.ref
    assert (privilege, ref) == (reason.privilege, facts.chain[-1])


@st.composite
def grants(draw: st.DrawFn) -> Given:
    ref = draw(st.sampled_from([*_ABOVE, ROLE, TABLE, VIEW]))
    return given_on(ref, draw(st.sampled_from(sorted(GRANTABLE[ref.type]))), draw(st.sampled_from(PRINCIPALS)))


edges = st.dictionaries(st.sampled_from(PRINCIPALS), st.lists(st.sampled_from(ROLES), max_size=2, unique=True))


@settings(max_examples=300, deadline=None)
@given(
    chain=st.sampled_from(CHAINS),
    rights=st.lists(grants(), max_size=6),
    managed=st.sets(st.sampled_from([WAREHOUSE, OUTER, INNER]), max_size=2),
    roles_of=edges,
)
def test_an_explanation_says_what_the_model_says_and_each_chain_holds(
    chain: Sequence[ObjectRef],
    rights: list[Given],
    managed: set[ObjectRef],
    roles_of: dict[PrincipalId, list[PrincipalId]],
) -> None:
    facts = facts_of(chain, *rights, managed=[ref for ref in chain if ref in managed])
    reached = reach({ALICE: ()}, roles_of)
    mine = held(facts, reached)
    for action in ACTIONS[chain[-1].type]:
        found = explain(action, facts, reached)
        assert found.allowed is is_allowed(action, mine), action
        for reason in found.because:
            assert reason.privilege in mine
            replay(reason, facts, roles_of)
        assert found.managed is None or not found.allowed


def only(found: Explanation) -> Reason:
    (reason,) = found.because
    return reason


def ask(action: Action, *rights: Given, chain: Sequence[ObjectRef] = (*_ABOVE, TABLE)) -> Explanation:
    return explain(action, facts_of(chain, *rights), {ALICE: ()})


def test_a_right_far_above_is_followed_down_to_the_object() -> None:
    reason = only(ask(TableAction.DROP, given_on(PROJECT, P.DATA_ADMIN)))
    assert [(step.privilege, step.ref) for step in reason.then] == [
        (P.MODIFY, WAREHOUSE),
        (P.MODIFY, OUTER),
        (P.MODIFY, INNER),
        (P.MODIFY, TABLE),
    ]


def test_the_nearest_grant_is_the_reason() -> None:
    far, near = given_on(WAREHOUSE, P.MODIFY), given_on(TABLE, P.OWNERSHIP)
    assert only(ask(TableAction.DROP, far, near)).grant == near
    assert only(ask(TableAction.DROP, far)).grant == far


def test_the_grant_of_fewer_roles_is_the_reason() -> None:
    facts = facts_of((*_ABOVE, TABLE), *(given_on(TABLE, P.SELECT, role) for role in ROLES[:3]))
    reached = reach({ALICE: ()}, {ALICE: [ROLES[3]], ROLES[3]: [ROLES[0], ROLES[1]], ROLES[0]: [ROLES[2]]})
    reason = only(explain(TableAction.READ_DATA, facts, reached))
    assert reason.through == (ROLES[3], ROLES[0])


def test_a_role_of_the_token_is_the_first_of_the_way() -> None:
    reached = reach({ALICE: (), ROLES[0]: (ROLES[0],)}, {ROLES[0]: [ROLES[1]], ALICE: [ROLES[2]]})
    assert reached == {
        ALICE: (),
        ROLES[0]: (ROLES[0],),
        ROLES[1]: (ROLES[0], ROLES[1]),
        ROLES[2]: (ROLES[2],),
    }


def test_roles_in_each_other_end() -> None:
    assert reach({ALICE: ()}, {ALICE: [ROLES[0]], ROLES[0]: [ROLES[1]], ROLES[1]: [ROLES[0]]}).keys() == {
        ALICE,
        ROLES[0],
        ROLES[1],
    }


def test_of_several_needs_those_not_met_are_missing() -> None:
    found = ask(NamespaceAction.MOVE, given_on(OUTER, P.MODIFY), chain=_ABOVE)
    assert found.missing == (frozenset({P.MANAGE_GRANTS}),)
    assert only(found).grant.privilege is P.MODIFY
    assert not found.allowed


def test_managed_access_is_named_only_where_it_is_the_reason() -> None:
    chain, owned = (*_ABOVE, TABLE), given_on(TABLE, P.OWNERSHIP)
    managed = facts_of(chain, owned, managed=[OUTER])
    found = explain(TableAction.READ_GRANTS, managed, {ALICE: ()})
    assert (found.allowed, found.managed) == (False, OUTER)
    assert explain(TableAction.DROP, managed, {ALICE: ()}).managed is None
    other = facts_of(chain, given_on(TABLE, P.SELECT), managed=[OUTER])
    assert explain(TableAction.READ_GRANTS, other, {ALICE: ()}).managed is None


def test_what_is_seen_from_below_names_the_grant_below() -> None:
    below = given_on(TABLE, P.SELECT)
    reason = only(ask(NamespaceAction.GET_METADATA, below, chain=_ABOVE))
    assert (reason.grant, reason.then) == (below, (Step(P.SEE, INNER),))
    role = only(ask(RoleAction.READ, below, chain=(SERVER, PROJECT, ROLE)))
    assert role.then == (Step(P.SEE, PROJECT), Step(P.DESCRIBE, ROLE))
    assert not ask(NamespaceAction.LIST_EVERYTHING, below, chain=_ABOVE).allowed


@pytest.mark.parametrize(
    ("action", "chain", "helped"),
    [
        (NamespaceAction.GET_METADATA, _ABOVE, True),
        (NamespaceAction.LIST_EVERYTHING, _ABOVE, False),
        (ProjectAction.RENAME, _ABOVE[:2], False),
        (RoleAction.READ, (SERVER, PROJECT, ROLE), True),
        (RoleAction.UPDATE, (SERVER, PROJECT, ROLE), False),
        (TableAction.GET_METADATA, (*_ABOVE, TABLE), False),
    ],
)
def test_a_right_below_helps_whoever_only_has_to_see(
    action: Action, chain: Sequence[ObjectRef], *, helped: bool
) -> None:
    assert is_helped_from_below(action, chain) is helped
