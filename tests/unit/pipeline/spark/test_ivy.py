from pathlib import Path

import pytest

from pipeline.spark.artifacts import Artifact
from pipeline.spark.ivy import IvyFetcher
from pipeline.spark.java import Java

ARTIFACT = Artifact("org.example", "thing", "1.2", "00", 1)
JAVA = Java(Path("/jdk"), Path("/jdk/bin/java"), 17, "PATH", has_incubator_vector=True)


def fetcher(tmp_path: Path, mirror: str | None = None) -> IvyFetcher:
    return IvyFetcher(JAVA, tmp_path / "cache", mirror)


def command(tmp_path: Path, mirror: str | None = None) -> list[str]:
    return fetcher(tmp_path, mirror)._command(ARTIFACT, tmp_path)


def test_the_command_asks_for_one_jar_and_not_what_it_depends_on(tmp_path: Path) -> None:
    words = command(tmp_path)
    at = words.index("-dependency")
    assert words[at : at + 4] == ["-dependency", "org.example", "thing", "1.2"]
    assert "-notransitive" in words
    assert "-settings" not in words


def test_a_mirror_is_the_only_repository_asked(tmp_path: Path) -> None:
    words = command(tmp_path, 'https://mirror.example/a?b="1"&c=2')
    settings = Path(words[words.index("-settings") + 1]).read_text()
    assert "root='https://mirror.example/a?b=\"1\"&amp;c=2'" in settings
    assert settings.count("<ibiblio") == 1


def test_a_proxy_of_the_environment_is_given_to_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "localhost,.inside.example")
    words = command(tmp_path)
    assert {"-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=3128"} <= set(words)
    assert "-Dhttp.nonProxyHosts=localhost|*.inside.example" in words


def test_a_failed_fetch_says_what_to_fetch_where_to_put_it_and_the_mirrors_variable(tmp_path: Path) -> None:
    said = fetcher(tmp_path)._explain(ARTIFACT, "java.net.UnknownHostException: repo.example\n at x")
    assert "org.example:thing:1.2 could not be fetched from the public Maven repository" in said
    assert "UnknownHostException: repo.example" in said
    assert str(tmp_path / "cache/jars/thing/1.2/thing-1.2.jar") in said
    assert "LAKEWARDEN_MAVEN_MIRROR=" in said
    assert "\n" not in said


def test_a_mirrors_password_is_not_shown(tmp_path: Path) -> None:
    said = fetcher(tmp_path, "https://user:hidden@mirror.example/m2")._explain(ARTIFACT, "")
    assert "https://mirror.example/m2" in said
    assert "hidden" not in said
