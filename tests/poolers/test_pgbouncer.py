"""Two servers behind a real pgbouncer: right answers in session mode, a refusal in the others, never a wrong answer."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
import pytest

from lakewarden.config import read
from lakewarden.doctor import database as doctor
from lakewarden.doctor.findings import State
from tests.integration.replicas.exchange import Answer, Call
from tests.integration.replicas.pair import SCHEMA, Lake, Pair, add_clients, started
from tests.servers.issuer import run_issuer
from tests.servers.lakewarden_serve import LakewardenFailed, prepared
from tests.servers.pgbouncer import Mode, PgBouncer, pgbouncer

TABLES = 20
ROUNDS = 25
URL = "LAKEWARDEN__DATABASE__URL"


@dataclass
class Scene:
    pair: Pair
    bouncer: PgBouncer


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    state_dir = tmp_path_factory.mktemp("pooled") / "state"
    signed_in = add_clients(state_dir)
    with ExitStack() as stack:
        bouncers: list[PgBouncer] = []

        def through(url: str) -> str:
            if not bouncers:
                bouncers.append(stack.enter_context(pgbouncer(url, mode="session")))
            return bouncers[0].url

        issuer = stack.enter_context(run_issuer(state_dir))
        people = signed_in(issuer)[:2]
        pair = stack.enter_context(started(issuer, people, a_through=through, b_through=through))
        yield Scene(pair, bouncers[0])


@pytest.fixture
def lake(scene: Scene) -> Lake:
    """`n<i>.t<i>`, each with its own name as the property `mark`."""
    made = Lake.made(scene.pair)
    for number in range(TABLES):
        namespace = {"namespace": [f"n{number}"], "properties": {"mark": f"n{number}"}}
        scene.pair.a.done("POST", made.path("namespaces"), namespace)
        table = {"name": f"t{number}", "schema": SCHEMA, "properties": {"mark": f"t{number}"}}
        scene.pair.a.done("POST", made.tables(f"n{number}"), table)
    return made


def _round(scene: Scene, lake: Lake, number: int) -> list[tuple[Answer, bool]]:
    """Requests to both servers at once; with each answer whether it is the right one to what was asked."""
    asked: list[tuple[Call, Callable[[Any], bool]]] = []
    for replica in scene.pair.both:
        ask = partial(replica.call, scene.pair.admin)
        for each in range(TABLES):
            table, mark = lake.tables(f"n{each}", f"t{each}"), f"{replica.port}-{each}"
            update = {"action": "set-properties", "updates": {mark: str(number)}}
            asked += [
                (ask("GET", table), _Right(f"t{each}", ("metadata", "properties", "mark"))),
                (ask("GET", lake.path("namespaces", f"n{each}")), _Right(f"n{each}", ("properties", "mark"))),
                (
                    ask("POST", table, {"requirements": [], "updates": [update]}),
                    _Right(str(number), ("metadata", "properties", mark)),
                ),
                (ask("GET", lake.config), _Right(lake.id, ("overrides", "prefix"))),
            ]
    answers = scene.pair.ask([call for call, _ in asked])
    return [(answer, is_right(answer.json())) for answer, (_, is_right) in zip(answers, asked, strict=True)]


@dataclass(frozen=True)
class _Right:
    """What stands at a place of the right answer."""

    value: str
    place: tuple[str, ...]

    def __call__(self, told: Any) -> bool:
        for name in self.place:
            told = told.get(name, {})
        return bool(told == self.value)


def test_session_mode_gives_right_answers_only(scene: Scene, lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    answers = [answer for number in range(ROUNDS) for answer in _round(scene, lake, number)]
    assert Counter((answer.status, is_right) for answer, is_right in answers) == {(200, True): len(answers)}
    with capsys.disabled():
        print(f"\npgbouncer, session mode: {len(answers)} answers, 0 wrong")  # noqa: T201
    for replica in scene.pair.both:
        assert "hot" in _names(scene), "the hot reads have sessions too"
        assert "WARNING" not in replica.server.log_text()


def test_a_pooler_that_changes_its_mode_meanwhile_causes_no_wrong_answer(
    scene: Scene, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    _round(scene, lake, -1)
    scene.bouncer.set_mode("transaction")
    answers = [answer for number in range(ROUNDS) for answer in _round(scene, lake, number)]
    statuses = Counter(answer.status for answer, _ in answers)
    with capsys.disabled():
        print(f"\npgbouncer, session mode changed to transaction: {dict(statuses)}, 0 wrong")  # noqa: T201
    assert set(statuses) <= {200, 500, 503}
    assert all(is_right for answer, is_right in answers if answer.status == 200)
    assert {answer.error[1] for answer, _ in answers if answer.status == 500} <= {"CommitStateUnknownException"}


@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("command", ["serve", "work", "migrate"])
def test_other_modes_are_refused_at_the_start(mode: Mode, command: str) -> None:
    with prepared({}) as server, pgbouncer(server.settings[URL], mode=mode) as bouncer:
        server.settings[URL] = bouncer.url
        with pytest.raises(LakewardenFailed, match="pool_mode = session"):
            server.run(command)


@pytest.mark.parametrize(("mode", "state"), [("session", State.OK), ("transaction", State.FAIL)])
def test_the_doctor_says_what_lies_between(mode: Mode, state: State) -> None:
    with prepared({}) as server, pgbouncer(server.settings[URL], mode=mode) as bouncer:
        findings = list(doctor.examine(read({URL: bouncer.url})))
    (found,) = [each for each in findings if each.name == "sessions"]
    assert found.state is state, found
    assert "pooler" in found.sentence


def _names(scene: Scene) -> str:
    url = scene.bouncer.target
    with psycopg.connect(url) as connection:
        rows = connection.execute("select application_name from pg_stat_activity where datname = current_database()")
        return " ".join(name for (name,) in rows.fetchall())
