import hashlib
from pathlib import Path

import pytest

from lakewarden.cache_folder import cache_folder
from pipeline.spark import jars
from pipeline.spark.artifacts import Artifact, artifacts
from pipeline.spark.errors import JarUnavailable
from pipeline.spark.jars import jar_path, provide_jars

CONTENT = b"the bytes of a jar"
ARTIFACT = Artifact("org.example", "thing", "1.2", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


class Repository:
    """A fetcher that counts its calls and returns the given content."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.content = content
        self.fetched = 0

    def __call__(self, artifact: Artifact, folder: Path) -> Path:
        self.fetched += 1
        jar = folder / artifact.file_name
        jar.write_bytes(self.content)
        return jar


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "artifacts", lambda: {"thing": ARTIFACT})


def files(cache: Path) -> list[str]:
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())


def test_a_missing_jar_is_fetched_under_its_version(tmp_path: Path) -> None:
    (jar,) = provide_jars(["thing"], fetch=Repository(), cache=tmp_path)
    assert jar == tmp_path / "jars/thing/1.2/thing-1.2.jar"
    assert jar.read_bytes() == CONTENT
    assert files(tmp_path) == ["jars/.lock", "jars/thing/1.2/thing-1.2.jar"]


def test_a_cached_jar_is_used_without_a_fetch(tmp_path: Path) -> None:
    repository = Repository()
    for _ in range(2):
        provide_jars(["thing"], fetch=repository, cache=tmp_path)
    assert repository.fetched == 1


@pytest.mark.parametrize("damage", [b"short", b"THE BYTES OF A JAR"])
def test_a_damaged_jar_in_the_cache_is_fetched_again(tmp_path: Path, damage: bytes) -> None:
    jar = jar_path(ARTIFACT, cache=tmp_path)
    jar.parent.mkdir(parents=True)
    jar.write_bytes(damage)
    provide_jars(["thing"], fetch=Repository(), cache=tmp_path)
    assert jar.read_bytes() == CONTENT


def test_a_damaged_download_is_said_and_removed(tmp_path: Path) -> None:
    with pytest.raises(JarUnavailable) as refusal:
        provide_jars(["thing"], fetch=Repository(b"an error page"), cache=tmp_path)
    assert "org.example:thing:1.2 was damaged and is removed: it had 13 bytes" in str(refusal.value)
    assert files(tmp_path) == ["jars/.lock"]


def test_what_a_killed_download_left_is_removed(tmp_path: Path) -> None:
    leftover = tmp_path / "jars/.staging-old"
    leftover.mkdir(parents=True)
    (leftover / "half.jar").write_bytes(b"half")
    provide_jars(["thing"], fetch=Repository(), cache=tmp_path)
    assert not leftover.exists()


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"LAKEWARDEN_CACHE": "/own", "XDG_CACHE_HOME": "/xdg"}, Path("/own")),
        ({"XDG_CACHE_HOME": "/xdg"}, Path("/xdg/lakewarden")),
        ({}, Path.home() / ".cache/lakewarden"),
        ({"LAKEWARDEN_CACHE": "", "XDG_CACHE_HOME": ""}, Path.home() / ".cache/lakewarden"),
    ],
)
def test_cache_folder_is_chosen_by_the_environment(environ: dict[str, str], folder: Path) -> None:
    assert cache_folder(environ) == folder


@pytest.mark.parametrize("artifact", artifacts().values(), ids=lambda artifact: artifact.module)
def test_every_pinned_artifact_has_a_whole_checksum(artifact: Artifact) -> None:
    assert len(bytes.fromhex(artifact.sha256)) == hashlib.sha256().digest_size
    assert artifact.size > 0
