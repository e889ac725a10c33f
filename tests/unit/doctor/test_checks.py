import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden.config import Config
from lakewarden.doctor import checks, command
from lakewarden.doctor.findings import Finding, State, fail, ok, warn

SECRET = "correct-horse"


def states(findings: list[Finding], name: str) -> list[State]:
    return [finding.state for finding in findings if finding.name == name]


def test_every_problem_of_the_configuration_is_a_line_and_nothing_else_is_examined() -> None:
    found = checks.run(
        {
            "LAKEWARDEN__SERVER__PORT": "many",
            "LAKEWARDEN__SERVRE__HOST": "x",
            "LAKEWARDEN__DATABASE__URL": f"postgresql://u:{SECRET}@h/d",
        }
    )
    assert [(finding.state, finding.name) for finding in found] == [(State.FAIL, "configuration")] * 2
    assert {finding.sentence.split(":")[0] for finding in found} == {
        "LAKEWARDEN__SERVER__PORT",
        "LAKEWARDEN__SERVRE",
    }
    assert SECRET not in command.as_text(found)


def test_an_empty_environment_fails_without_a_traceback() -> None:
    found = checks.run({})
    assert states(found, "configuration") == [State.OK]
    assert states(found, "identity") == [State.FAIL]
    assert states(found, "database") == [State.FAIL]
    assert states(found, "storage") == [State.WARN]


def test_a_check_that_fails_itself_becomes_a_finding_without_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_settings: Config) -> Iterator[Finding]:
        yield ok("first", "is fine")
        raise RuntimeError(SECRET)

    monkeypatch.setattr(checks, "CHECKS", (("odd", broken),))
    found = checks.run({})
    assert [finding.name for finding in found] == ["configuration", "first", "odd"]
    assert found[-1].state is State.FAIL
    assert "RuntimeError" in found[-1].sentence
    assert SECRET not in command.as_document(found)


def test_everything_that_is_not_ok_says_what_to_do(tmp_path: Path) -> None:
    environments = [
        {},
        {"LAKEWARDEN__MODE": "development", "LAKEWARDEN__SERVER__HOST": "0.0.0.0"},  # noqa: S104 that is what is warned of
        {"LAKEWARDEN__STORAGE__LOCAL_ROOTS": str(tmp_path / "gone")},
    ]
    for environment in environments:
        assert all(bool(finding.fix) != (finding.state is State.OK) for finding in checks.run(environment))


@pytest.mark.parametrize(
    ("findings", "code"), [([], 0), ([warn("a", "b", fix="c")], 0), ([fail("a", "b", fix="c")], 1)]
)
def test_only_a_failure_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], findings: list[Finding], code: int
) -> None:
    monkeypatch.setattr(command, "run", lambda _environment: findings)
    assert command.main(as_json=False) == code
    assert command.main(as_json=True) == code
    text, _, document = capsys.readouterr().out.partition("{")
    assert text.splitlines()[-1].startswith(f"{len(findings)} checks:")
    assert json.loads("{" + document)["ok"] is (code == 0)


def test_a_finding_is_a_line_and_its_remedy() -> None:
    assert str(ok("disk", "has room")) == "ok    disk: has room"
    assert str(fail("disk", "is full", fix="free space")) == "FAIL  disk: is full\n      fix: free space"
