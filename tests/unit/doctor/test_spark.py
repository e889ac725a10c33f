from pathlib import Path
from types import SimpleNamespace

import pytest

from lakewarden import config
from lakewarden.doctor import spark
from lakewarden.doctor.findings import Finding, State


class JavaNotFound(Exception):
    pass


def examined() -> dict[str, Finding]:
    return {finding.name: finding for finding in spark.examine(config.read({}))}


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, SimpleNamespace]:
    """Stand-ins for the pipeline's modules: one jar of five bytes in `tmp_path`, Java 17."""
    jar = SimpleNamespace(coordinates="org:jar:1", version="1", size=5)
    found: dict[str, SimpleNamespace] = {
        "java": SimpleNamespace(find_java=lambda: SimpleNamespace(major=17, home="/jdk", source="PATH")),
        "errors": SimpleNamespace(JavaNotFound=JavaNotFound),
        "artifacts": SimpleNamespace(artifacts=lambda: {"jar": jar}),
        "jars": SimpleNamespace(CATALOG_JARS=("jar",), jar_path=lambda _artifact, *, cache: cache / "jar"),
    }
    monkeypatch.setattr(spark, "is_present", lambda _module: True)
    monkeypatch.setattr(spark, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(spark, "find_spec", lambda _module: object())
    monkeypatch.setattr(spark, "_part", found.__getitem__)
    return found


def test_without_the_extra_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "find_spec", lambda _module: None)
    assert [finding.state for finding in examined().values()] == [State.OK]


def test_a_module_below_a_missing_package_is_not_present() -> None:
    assert not spark.is_present("no_such_package.module")


@pytest.mark.parametrize(("content", "state"), [(None, State.WARN), (b"12345", State.OK), (b"123", State.FAIL)])
def test_a_jar_is_there_whole_or_it_is_said(
    parts: dict[str, SimpleNamespace], tmp_path: Path, content: bytes | None, state: State
) -> None:
    if content is not None:
        (tmp_path / "jar").write_bytes(content)
    assert examined()["jar jar"].state is state


def test_no_java_is_a_failure_with_its_reason(parts: dict[str, SimpleNamespace]) -> None:
    def find_java() -> None:
        raise JavaNotFound("only Java 8 was found")

    parts["java"].find_java = find_java
    finding = examined()["java"]
    assert (finding.state, finding.sentence) == (State.FAIL, "only Java 8 was found")
