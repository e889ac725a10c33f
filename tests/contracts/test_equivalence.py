"""`database` and `openfga` decide alike: random objects, roles, grants, flags, moves and removals, random questions.

The seed is printed and can be given again in LAKEWARDEN_TEST_SEED.
"""

import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.database import DatabaseAuthorizer
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.ledger import grants, members
from lakewarden.authz.model import GRANTABLE
from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer
from lakewarden.context import PrincipalId, role_principal
from tests.contracts.world import ADMIN, SERVER

QUESTIONS = 2000
ROUNDS = 100
"""Between two of them the world changes."""

_T = ObjectType
_BELOW = {
    _T.SERVER: [_T.PROJECT],
    _T.PROJECT: [_T.WAREHOUSE, _T.ROLE, _T.TAG_DEFINITION],
    _T.WAREHOUSE: [_T.NAMESPACE],
    _T.NAMESPACE: [_T.NAMESPACE, _T.NAMESPACE, _T.TABLE, _T.VIEW],
}
_FLAGGED = {_T.WAREHOUSE, _T.NAMESPACE}
_USERS = [PrincipalId(f"oidc~{name}") for name in ("ann", "bob", "c d", "e%20f", "é")]
_ROLES = [role_principal(f"r{number}") for number in range(8)]
_DEEPEST = 7
"""Objects in a chain; the suite of the contract has the deepest."""


@dataclass
class World:
    dice: random.Random
    parent: dict[ObjectRef, ObjectRef] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)

    def chain(self, ref: ObjectRef) -> list[ObjectRef]:
        return [*self.chain(self.parent[ref]), ref] if ref in self.parent else [ref]

    def objects(self) -> list[ObjectRef]:
        return [SERVER[0], *self.parent]

    def change(self) -> None:
        step = self.dice.choice(
            [self.grow, self.give, self.give, self.take, self.join, self.leave, self.flag, self.move]
        )
        step = self.dice.choice([self.forget, self.forget_principal, self.forget_project]) if self.rarely() else step
        step()
        self.done[step.__name__] += 1

    def rarely(self) -> bool:
        return self.dice.random() < 0.04

    def grow(self) -> None:
        places = [ref for ref in self.objects() if ref.type in _BELOW and self.room_in(ref)]
        [above] = self.dice.choices(places, weights=[len(self.chain(ref)) for ref in places])
        kind = self.dice.choice(_BELOW[above.type])
        self.parent[ObjectRef(kind, f"{kind.value}-{len(self.parent)}-{self.dice.randrange(10**6)}")] = above

    def room_in(self, ref: ObjectRef) -> bool:
        return len(self.chain(ref)) < _DEEPEST

    def give(self) -> None:
        ref = self.dice.choice(self.objects())
        privileges = self.dice.sample(sorted(GRANTABLE[ref.type]), k=1)
        grants.give(self.chain(ref), [(self.anybody(), each) for each in privileges], granted_by=ADMIN)

    def take(self) -> None:
        ref = self.dice.choice(self.objects())
        there = grants.on(ref)
        grants.remove(ref, self.dice.sample(there, k=len(there) // 2 + 1) if there else [])

    def join(self) -> None:
        # from a lower number to a higher one: the services let no cycle come about either
        member, role = sorted(self.dice.sample([*_USERS, *_ROLES], k=2), key=[*_USERS, *_ROLES].index)
        if role in _ROLES:
            members.add(role, [member], project_id="p", added_by=ADMIN)

    def leave(self) -> None:
        role = self.dice.choice(_ROLES)
        there = members.of_role(role)
        members.remove(role, self.dice.sample(there, k=1) if there else [])

    def flag(self) -> None:
        places = [ref for ref in self.parent if ref.type in _FLAGGED]
        if places:
            chain = self.chain(self.dice.choice(places))
            grants.set_managed(chain, managed=self.dice.random() < 0.6, set_by=ADMIN)

    def move(self) -> None:
        movable = [ref for ref in self.parent if ref.type in {_T.NAMESPACE, _T.TABLE, _T.VIEW}]
        if not movable:
            return
        ref = self.dice.choice(movable)
        before = self.chain(self.parent[ref])
        places = [
            to
            for to in self.objects()
            if ref.type in _BELOW.get(to.type, [])
            and ref not in self.chain(to)
            and self.chain(to)[1:3] == before[1:3]  # in its warehouse
            and len(self.chain(to)) < _DEEPEST - 2
        ]
        if places:
            self.parent[ref] = self.dice.choice(places)
            grants.reparent(ref, before=before, after=self.chain(self.parent[ref]))

    def forget(self) -> None:
        leaves = [ref for ref in self.parent if ref not in set(self.parent.values())]
        if leaves:
            ref = self.dice.choice(leaves)
            del self.parent[ref]
            grants.forget_object(ref)

    def forget_principal(self) -> None:
        gone = self.anybody()
        grants.forget_principal(gone)
        members.forget_principal(gone)

    def forget_project(self) -> None:
        projects = [ref for ref in self.parent if ref.type is _T.PROJECT]
        if len(projects) > 1:
            gone = self.dice.choice(projects)
            self.parent = {ref: above for ref, above in self.parent.items() if gone not in self.chain(ref)}
            grants.forget_project(gone.id)

    def anybody(self) -> PrincipalId:
        return self.dice.choice([*_USERS, *_ROLES])

    def question(self) -> tuple[Principal, list[ObjectRef]]:
        roles = tuple(self.dice.sample(_ROLES, k=self.dice.choice([0, 0, 0, 1, 3])))
        return Principal(self.anybody(), roles), self.chain(self.dice.choice(self.objects()))


def test_database_and_openfga_decide_alike(openfga: OpenFgaAuthorizer, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("LAKEWARDEN_TEST_SEED") or random.randrange(10**9))  # noqa: S311 no secret
    world, database = World(random.Random(seed)), DatabaseAuthorizer()  # noqa: S311 no secret
    answers: Counter[str] = Counter()
    began = time.monotonic()
    for _ in range(60):
        world.grow()
    for _ in range(ROUNDS):
        for _ in range(8):
            world.change()
        for _ in range(QUESTIONS // ROUNDS):
            principal, chain = world.question()
            expected, found = database.privileges(principal, chain), openfga.privileges(principal, chain)
            assert found == expected, f"seed {seed}: {principal} on {[str(ref) for ref in chain]}"
            answers["nothing" if not found else "only seen" if len(found) <= 2 else "more"] += 1
            answers[f"on a {chain[-1].type.value}"] += 1
    with capsys.disabled():
        took = f"{sum(world.done.values())} changes in {time.monotonic() - began:.0f} s"
        print(f"\nequivalence: seed {seed}, {QUESTIONS} questions, {took}; {dict(answers)}; {dict(world.done)}")  # noqa: T201 the counts
    assert min(answers["nothing"], answers["only seen"], answers["more"]) > QUESTIONS // 100
