"""The jar cache outside the clone: fetched once, checked against our pins, re-used without a network.

Layout: `<cache>/jars/<module>/<version>/<module>-<version>.jar`. A jar gets its name by one rename, after its
checksum was found right; two processes at once wait for each other.
"""

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipeline.spark.artifacts import Artifact, artifacts
from pipeline.spark.errors import JarUnavailable

CATALOG_JARS = ("iceberg-spark-runtime",)
MIRROR_VARIABLE = "LAKEWARDEN_MAVEN_MIRROR"

Fetch = Callable[[Artifact, Path], Path]


def jar_path(artifact: Artifact, *, cache: Path) -> Path:
    """Where the jar is, or would be."""
    return cache / "jars" / artifact.module / artifact.version / artifact.file_name


def provide_jars(names: Sequence[str] = CATALOG_JARS, *, fetch: Fetch, cache: Path) -> list[Path]:
    """The jars of these short names (versions.toml), fetched where they are missing or damaged.

    `fetch(artifact, folder)` puts the jar below `folder` and returns its path. Raises `JarUnavailable`.
    """
    return [_provide(artifacts()[name], fetch=fetch, cache=cache) for name in names]


def _provide(artifact: Artifact, *, fetch: Fetch, cache: Path) -> Path:
    target = jar_path(artifact, cache=cache)
    if _is_right(target, artifact):
        return target
    with _locked(cache) as staging:
        if _is_right(target, artifact):  # another process was quicker
            return target
        fetched = fetch(artifact, staging)
        _check(fetched, artifact)
        target.parent.mkdir(parents=True, exist_ok=True)
        fetched.replace(target)
    return target


@contextmanager
def _locked(cache: Path) -> Iterator[Path]:
    """Holds the cache's lock and gives an empty folder in it; removes what a killed process left."""
    jars = cache / "jars"
    jars.mkdir(parents=True, exist_ok=True)
    with (jars / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in jars.glob(".staging-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=".staging-", dir=jars) as staging:
            yield Path(staging)


def _is_right(jar: Path, artifact: Artifact) -> bool:
    return jar.is_file() and jar.stat().st_size == artifact.size and _sha256(jar) == artifact.sha256


def _check(jar: Path, artifact: Artifact) -> None:
    size, digest = jar.stat().st_size, _sha256(jar)
    if digest == artifact.sha256:
        return
    jar.unlink()
    raise JarUnavailable(
        f"The download of {artifact.coordinates} was damaged and is removed: "
        f"it had {size} bytes with sha256 {digest}, "
        f"expected {artifact.size} bytes with {artifact.sha256}. Try again; if it happens again, look at "
        f"the repository or mirror that {MIRROR_VARIABLE} names."
    )


def _sha256(jar: Path) -> str:
    with jar.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
