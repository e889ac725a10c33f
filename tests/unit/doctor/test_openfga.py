"""What doctor says of OpenFGA, by what the database knows of its store and what OpenFGA has."""

from typing import Any

import psycopg
import pytest

from lakewarden import config
from lakewarden.authz.openfga import client, depth, language
from lakewarden.doctor import openfga
from lakewarden.doctor.findings import Finding
from lakewarden.errors import Unavailable

ENVIRONMENT = {
    "LAKEWARDEN__DATABASE__URL": "postgresql://db.example.org/lake",
    "LAKEWARDEN__AUTHORIZATION__BACKEND": "openfga",
    "LAKEWARDEN__OPENFGA__API_URL": "http://openfga.example.org:8080",
}


class Fga:
    """Stands for a client of OpenFGA."""

    has: bool | Unavailable = True
    models = True

    def __init__(self, *_: Any) -> None:
        """Connects to nothing."""

    def has_store(self) -> bool:
        if isinstance(self.has, Unavailable):
            raise self.has
        return self.has

    def has_model(self, _model_id: str) -> bool:
        return self.models

    def close(self) -> None:
        """There are no connections."""


@pytest.fixture
def fga(monkeypatch: pytest.MonkeyPatch) -> type[Fga]:
    class Own(Fga):
        """Of this test."""

    monkeypatch.setattr(client, "OpenFga", Own)
    monkeypatch.setattr(depth, "follows", lambda *_, **__: True)
    return Own


def found(monkeypatch: pytest.MonkeyPatch, *, filled: bool = True, waiting: int = 0, hashed: str = "") -> list[Finding]:
    row = ("store", "model", hashed or language.model_hash(), filled)
    monkeypatch.setattr(openfga, "_known", lambda _settings: (row, waiting))
    return list(openfga.examine(config.read(ENVIRONMENT)))


def test_a_store_with_the_current_model_is_well(fga: type[Fga], monkeypatch: pytest.MonkeyPatch) -> None:
    (finding,) = found(monkeypatch)
    assert (finding.state, finding.sentence) == ("ok", "is reachable; its store 'lakewarden' has the current model")


def test_only_who_uses_it_is_told_of_it(fga: type[Fga]) -> None:
    assert not list(openfga.examine(config.read({})))


def test_what_is_missing_is_told(fga: type[Fga], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not have all rights" in found(monkeypatch, filled=False)[0].sentence
    assert "the model of another version" in found(monkeypatch, hashed="other")[0].sentence
    assert "1001 changes" in found(monkeypatch, waiting=1001)[-1].sentence
    fga.models = False
    assert "no longer has" in found(monkeypatch)[0].sentence
    fga.has = False
    assert [each.state for each in found(monkeypatch)] == ["FAIL"]


def test_one_that_does_not_answer_is_told(fga: type[Fga], monkeypatch: pytest.MonkeyPatch) -> None:
    fga.has = Unavailable("OpenFGA does not answer")
    (finding,) = found(monkeypatch)
    assert (finding.state, finding.sentence) == ("FAIL", "does not answer")


def test_one_that_follows_too_few_steps_is_told(fga: type[Fga], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "follows", lambda *_, **__: False)
    well, shallow = found(monkeypatch)
    assert (well.state, shallow.state) == ("ok", "warn")
    assert "OPENFGA_RESOLVE_NODE_LIMIT=" in str(shallow.fix)


def test_without_a_store_migrating_makes_one(fga: type[Fga], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openfga, "_known", lambda _settings: (None, 0))
    (finding,) = openfga.examine(config.read(ENVIRONMENT))
    assert finding.fix == "run `lakewarden migrate`"


def test_a_database_that_does_not_answer_has_findings_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_settings: object) -> None:
        raise psycopg.OperationalError

    monkeypatch.setattr(openfga, "_known", refuse)
    assert not list(openfga.examine(config.read(ENVIRONMENT)))
