"""Explains a decision: the shortest path from a grant to each privilege that the action needs. No I/O.

`permissions.explanations` collects the facts; this module applies the authorization model to them, step by step.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from lakewarden.authz.actions import SHOWN_WITH_PROJECT, TABULAR_TYPES, Action, ObjectType
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.model import INHERITED, REQUIRED, Level, Needs, Privilege, effective, implications
from lakewarden.context import PrincipalId

Path = tuple[PrincipalId, ...]
"""The roles through which a principal gets another's grants, which is the last. Empty for their own."""


@dataclass(frozen=True, slots=True)
class Given:
    """One grant as the ledger stores it."""

    ref: ObjectRef
    principal: PrincipalId
    privilege: Privilege
    granted_by: PrincipalId


@dataclass(frozen=True, slots=True)
class Facts:
    """The grants that may matter for the last object of `chain` (server first), by the principal who holds them.

    `granted` are on the objects of the chain, `below` on something inside `shown(chain)`; `managed` are the objects
    with managed access.
    """

    chain: tuple[ObjectRef, ...]
    granted: Mapping[PrincipalId, Sequence[Given]] = field(default_factory=dict)
    below: Mapping[PrincipalId, Given] = field(default_factory=dict)
    managed: frozenset[ObjectRef] = frozenset()


@dataclass(frozen=True, slots=True)
class Step:
    """A privilege that follows from the previous one: implied on the same object, or inherited by the next object."""

    privilege: Privilege
    ref: ObjectRef


@dataclass(frozen=True, slots=True)
class Reason:
    """Why `privilege` is held: a grant, the roles through which it counts, and the steps that follow from it."""

    privilege: Privilege
    grant: Given
    through: Path
    then: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """`because` has one reason for each need that is met; `missing` has the needs of which no privilege is held.

    `managed` is the object whose managed access is the only reason for what is missing, if there is one.
    """

    action: Action
    because: tuple[Reason, ...]
    missing: Needs
    managed: ObjectRef | None = None

    @property
    def allowed(self) -> bool:
        return not self.missing


def shown(chain: Sequence[ObjectRef]) -> ObjectRef | None:
    """The object that becomes visible by a privilege on anything inside it; None if the last object contains nothing.

    For a role or tag definition it is the project, because whoever sees a project sees these.
    """
    kind = chain[-1].type
    if kind is ObjectType.SERVER or kind in TABULAR_TYPES:
        return None
    return chain[-2] if kind in SHOWN_WITH_PROJECT else chain[-1]


def is_helped_from_below(action: Action, chain: Sequence[ObjectRef]) -> bool:
    """Whether a privilege on something inside `shown(chain)` meets a need of the action."""
    seen = shown(chain)
    held = effective([Level(ref.type, {Privilege.SEE} if ref == seen else ()) for ref in chain])
    return any(not held.isdisjoint(alternatives) for alternatives in REQUIRED[action])


def reach(
    start: Mapping[PrincipalId, Path], roles_of: Mapping[PrincipalId, Sequence[PrincipalId]]
) -> dict[PrincipalId, Path]:
    """All principals whose grants count for those in `start`, each with the shortest path; breadth first.

    `roles_of` are direct memberships. A path in `start` has at most one role, which the token names or the caller
    assumed.
    """
    reached = dict(start)
    waiting = deque(sorted(start, key=lambda principal: (len(start[principal]), principal)))
    while waiting:
        member = waiting.popleft()
        for role in roles_of.get(member, ()):
            if role not in reached:
                reached[role] = (*reached[member], role)
                waiting.append(role)
    return reached


def explain(action: Action, facts: Facts, reached: Mapping[PrincipalId, Path]) -> Explanation:
    """Whether the grants of all principals in `reached` together allow the action on the last object, and why."""
    because, missing = _answers(action, facts, reached)
    managed = None
    if missing and facts.managed:
        _, without = _answers(action, Facts(facts.chain, facts.granted, facts.below), reached)
        managed = next(ref for ref in facts.chain if ref in facts.managed) if without != missing else None
    return Explanation(action, because, missing, managed)


def _answers(action: Action, facts: Facts, reached: Mapping[PrincipalId, Path]) -> tuple[tuple[Reason, ...], Needs]:
    held = _held(facts, reached)
    because: list[Reason] = []
    missing: list[frozenset[Privilege]] = []
    for alternatives in REQUIRED[action]:
        met = [reason for privilege, reason in held.items() if privilege in alternatives]
        if met:
            because.append(met[0])
        else:
            missing.append(alternatives)
    return tuple(because), tuple(missing)


def _held(facts: Facts, reached: Mapping[PrincipalId, Path]) -> dict[Privilege, Reason]:
    """All privileges held on the last object, each with its shortest reason, sorted by length
    (Dijkstra's algorithm).
    """
    last, order = len(facts.chain) - 1, count()
    known: dict[tuple[int, Privilege], Reason] = {}
    waiting: list[tuple[int, int, int, Reason]] = []
    for level, reason in _sources(facts, reached):
        heappush(waiting, (len(reason.through) + len(reason.then), next(order), level, reason))
    while waiting:
        length, _, level, reason = heappop(waiting)
        if (level, reason.privilege) in known:
            continue
        known[level, reason.privilege] = reason
        for onto, privilege in _following(facts, level, reason.privilege):
            step = Step(privilege, facts.chain[onto])
            further = Reason(privilege, reason.grant, reason.through, (*reason.then, step))
            heappush(waiting, (length + 1, next(order), onto, further))
    return {privilege: reason for (level, privilege), reason in known.items() if level == last}


def _sources(facts: Facts, reached: Mapping[PrincipalId, Path]) -> Iterator[tuple[int, Reason]]:
    """The grants that count, those nearest to the last object first, each with the index of its object in the chain."""
    places = {ref: place for place, ref in enumerate(facts.chain)}
    grants = [given for principal in reached for given in facts.granted.get(principal, ())]
    for given in sorted(grants, key=lambda each: (-places[each.ref], each.privilege, each.principal)):
        yield places[given.ref], Reason(given.privilege, given, reached[given.principal], ())
    seen = shown(facts.chain)
    for principal in sorted(reached):
        if seen is not None and principal in facts.below:
            step = Step(Privilege.SEE, seen)
            yield places[seen], Reason(Privilege.SEE, facts.below[principal], reached[principal], (step,))


def _following(facts: Facts, level: int, privilege: Privilege) -> Iterator[tuple[int, Privilege]]:
    """The privileges that follow directly from one on the object at `level`: on this object and on the next one."""
    managed = not facts.managed.isdisjoint(facts.chain[: level + 1])
    for implied in sorted(implications(facts.chain[level].type, managed=managed).get(privilege, ())):
        yield level, implied
    if level + 1 < len(facts.chain):
        passed = INHERITED.get(facts.chain[level + 1].type, {}).get(privilege)
        if passed is not None:
            yield level + 1, passed
