"""No caller of one project can find out what is in another: every route, method and intruder.

A request about an object of the other project is answered as if the object did not exist: same status, same type and
same words apart from the name or id that was sent; no answer contains anything of it, and nothing changes.
"""

import json
import re
from collections.abc import Iterator

import pytest

from tests.integration.isolation.asked import OF_B, Asked, Values
from tests.integration.isolation.cases import CATALOG, Case, success
from tests.integration.isolation.matrix import CASES, MANAGEMENT
from tests.integration.isolation.served import served, short_form
from tests.integration.isolation.world import INTRUDERS, World, missing_like
from tests.servers.asgi_client import Answer

MINIMUM = 1500
"""The matrix has at least so many combinations of route, method and intruder: it does not shrink unseen."""
COMBINATIONS = [(route, intruder) for route in CASES for intruder in INTRUDERS]

_DURATION = re.compile(r'"duration-ms":\d+')
_GLOBAL = {
    "project",
    "user",
    "warehouse",
    "namespace_id",
    "inner_id",
    "table_id",
    "view_id",
    "generic_table_id",
    "role",
    "inner_role",
    "metadata",
    "task",
    "project_task",
}
"""What means something of the first project whatever project a request is about."""


def test_every_route_is_in_the_matrix() -> None:
    listed = set(CASES) | {short_form(route) for route in MANAGEMENT}
    there = served()
    assert listed - there == set()
    assert there - listed == set()


@pytest.mark.parametrize("count", [len(COMBINATIONS)], ids=lambda count: f"{count}-combinations")
def test_the_matrix_does_not_shrink(count: int) -> None:
    assert count >= MINIMUM


def variants(
    asked: Asked, world: World, *, in_own: bool, with_header: bool
) -> Iterator[tuple[str | None, list[tuple[Values, str | None]]]]:
    """Each project that the request may be about, with the requests about nothing that must be answered the same."""
    real, own = world.a.values, world.b.values["project"]
    gone = missing_like(real)
    all_gone = real | {name: gone[name] for name in asked.names}
    one_gone = [real | {name: gone[name]} for name in sorted(asked.names)] if len(asked.names) > 1 else []
    yield None, [(values, None) for values in (*one_gone, all_gone)] if asked.names else [(real, gone["project"])]
    if not with_header:
        return
    yield real["project"], [(real, gone["project"]), (all_gone, gone["project"]), (all_gone, real["project"])]
    if in_own and asked.names & _GLOBAL:
        yield own, [(all_gone, own)]


def said(answer: Answer, values: Values, project: str | None) -> tuple[int, str]:
    """Status and body, with what was sent taken out; some names are alike in both projects."""
    text = _DURATION.sub("", answer.body.decode())
    by_name = sorted(values.items(), key=lambda pair: pair[0].startswith(OF_B), reverse=True)
    sent = {value: name for name, value in by_name}
    if project is not None:
        sent.setdefault(project, "project")
    for value in sorted(sent, key=len, reverse=True):
        text = text.replace(value, f"{{{sent[value]}}}")
    return answer.status, text


def own_values(world: World) -> Values:
    return {f"{OF_B}{name}": value for name, value in world.b.values.items()}


@pytest.mark.parametrize("route", CASES)
def test_what_is_in_another_project_does_not_exist(world: World, route: str) -> None:
    before = world.state()
    for case in CASES[route]:
        asked = Asked.of(route, case)
        for intruder in INTRUDERS:
            caller = world.client.as_user(intruder)
            if case.open:
                ensure_nothing_told(asked.ask(caller, {}, None), world, {})
                continue
            for project, about_nothing in variants(asked, world, in_own=case.in_own, with_header=case.with_header):
                values = world.a.values | own_values(world)
                answer = asked.ask(caller, values, project)
                ensure_nothing_told(answer, world, values)
                where = f"{intruder} in {project}: {asked.method} {asked.path} {asked.body}"
                assert answer.status != 500, where
                for other, other_project in about_nothing:
                    missing_values = other | own_values(world)
                    missing = asked.ask(caller, missing_values, other_project)
                    assert said(answer, values, project) == said(missing, missing_values, other_project), where
    assert world.state() == before


def ensure_nothing_told(answer: Answer, world: World, sent: Values) -> None:
    """Nothing of the first project is in the answer but what was sent."""
    told = answer.body.decode() + json.dumps(answer.headers)
    for value in sorted(sent.values(), key=len, reverse=True):
        told = told.replace(value, "")
    assert not [secret for secret in world.secrets if secret in told.lower()]


READS = [route for route in (*CATALOG, *MANAGEMENT) if route.startswith(("GET", "HEAD"))]
WRITES = [route for route in (*CATALOG, *MANAGEMENT) if route not in READS]


@pytest.mark.parametrize("route", READS)
def test_the_owner_is_answered(world: World, route: str) -> None:
    """The same requests reach their objects when somebody asks who may: the matrix is not about typing errors."""
    for case in CASES[route]:
        ensure_answered(world, route, case)


@pytest.mark.parametrize(
    ("route", "index"), [(route, index) for route in WRITES for index, _ in enumerate(CASES[route])]
)
def test_the_owner_may_change(fresh_world: World, route: str, index: int) -> None:
    ensure_answered(fresh_world, route, CASES[route][index])


def ensure_answered(world: World, route: str, case: Case) -> None:
    if case.owner is not None:
        answer = Asked.of(route, case).ask(world.a.owner, world.a.values, world.a.values["project"])
        assert answer.status == (case.owner or success(route)), answer.body
