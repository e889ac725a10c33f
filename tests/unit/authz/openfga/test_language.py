"""The generated model, read by a small interpreter of OpenFGA's language, says what `authz/model.py` says."""

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.model import GRANTABLE, Level, Privilege, effective
from lakewarden.authz.openfga import language
from lakewarden.authz.openfga.language import MANAGED_ACCESS, assignable, authorization_model, here, privileges_of

_T = ObjectType
CHAINS = [
    [_T.SERVER],
    [_T.SERVER, _T.PROJECT],
    [_T.SERVER, _T.PROJECT, _T.ROLE],
    [_T.SERVER, _T.PROJECT, _T.TAG_DEFINITION],
    [_T.SERVER, _T.PROJECT, _T.WAREHOUSE],
    [_T.SERVER, _T.PROJECT, _T.WAREHOUSE, _T.NAMESPACE, _T.NAMESPACE, _T.TABLE],
    [_T.SERVER, _T.PROJECT, _T.WAREHOUSE, _T.NAMESPACE, _T.VIEW],
    [_T.SERVER, _T.PROJECT, _T.WAREHOUSE, _T.NAMESPACE, _T.GENERIC_TABLE],
]
RELATIONS: dict[str, Mapping[str, Any]] = {
    each["type"]: each.get("relations", {}) for each in authorization_model()["type_definitions"]
}
NAMES = "/".join
Tuples = set[tuple[int, str]]


def true(rule: Mapping[str, Any], relation: str, level: int, chain: list[ObjectType], tuples: Tuples) -> bool:
    """Whether the one user of this world has the relation to the object of a level."""
    match rule:
        case {"this": _}:
            return (level, relation) in tuples
        case {"computedUserset": {"relation": other}}:
            return holds(other, level, chain, tuples)
        case {"tupleToUserset": {"tupleset": {"relation": "parent"}, "computedUserset": {"relation": other}}}:
            # a parent whose kind knows no such relation adds nothing
            return other in RELATIONS[chain[level - 1]] and holds(other, level - 1, chain, tuples)
        case {"union": {"child": ways}}:
            return any(true(way, relation, level, chain, tuples) for way in ways)
        case {"difference": {"base": base, "subtract": subtract}}:
            return true(base, relation, level, chain, tuples) and not true(subtract, relation, level, chain, tuples)
    raise AssertionError(rule)


def holds(relation: str, level: int, chain: list[ObjectType], tuples: Tuples) -> bool:
    return true(RELATIONS[chain[level]][relation], relation, level, chain, tuples)


def asked(chain: list[ObjectType], tuples: Tuples) -> set[Privilege]:
    last = len(chain) - 1
    return {each for each in privileges_of(chain[-1]) if holds(each.value, last, chain, tuples)}


def flags_of(chain: list[ObjectType]) -> Iterator[tuple[int, ...]]:
    places = [level for level, kind in enumerate(chain) if MANAGED_ACCESS in assignable(kind)]
    for chosen in product([False, True], repeat=len(places)):
        yield tuple(place for place, is_set in zip(places, chosen, strict=True) if is_set)


@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
def test_each_grant_at_each_level_gives_what_the_model_says(chain: list[ObjectType]) -> None:
    compared = 0
    for flags in flags_of(chain):
        for level, kind in enumerate(chain):
            for privilege in GRANTABLE[kind]:
                tuples = {(level, here(privilege)), *((flag, MANAGED_ACCESS) for flag in flags)}
                levels = [
                    Level(each, {privilege} if number == level else (), managed=number in flags)
                    for number, each in enumerate(chain)
                ]
                assert asked(chain, tuples) == effective(levels), (privilege, level, flags)
                compared += 1
    assert compared >= len(GRANTABLE[chain[-1]])


@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
def test_without_grants_there_is_nothing(chain: list[ObjectType]) -> None:
    for flags in flags_of(chain):
        assert asked(chain, {(flag, MANAGED_ACCESS) for flag in flags}) == set()


def test_everything_that_can_be_granted_has_a_place_for_users_and_roles() -> None:
    for each in authorization_model()["type_definitions"][1:]:
        metadata = each["metadata"]["relations"]
        for privilege in GRANTABLE[ObjectType(each["type"])]:
            assert metadata[here(privilege)]["directly_related_user_types"] == [
                {"type": "user"},
                {"type": "role", "relation": "assignee"},
            ]
        # nothing but flags is everybody's
        public = {name for name, types in metadata.items() if "wildcard" in json.dumps(types)}
        assert public <= {MANAGED_ACCESS}


def test_no_implied_privilege_climbs_a_second_time() -> None:
    for kind, relations in RELATIONS.items():
        for name, rule in relations.items():
            if name.endswith("_here"):
                assert "tupleToUserset" not in json.dumps(rule), f"{kind}.{name}"


def test_a_question_about_any_kind_fits_in_one_batch() -> None:
    assert max(len(privileges_of(kind)) for kind in ObjectType) <= 50


def test_the_hash_is_the_models_and_stays_with_it() -> None:
    first = language.model_hash()
    language.authorization_model.cache_clear()
    language.model_hash.cache_clear()
    assert language.model_hash() == first
    assert len(first) == 64
