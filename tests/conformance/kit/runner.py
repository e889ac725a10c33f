"""Runs the Iceberg REST Compatibility Kit against a running catalog; Maven fetches its jars into the cache once."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.servers import maven

FOLDER = Path(__file__).parent
POM = FOLDER / "pom.xml"
SOURCES = (FOLDER / "NestedNamespacesTests.java",)
PACKAGE = "org.apache.iceberg.rest"
EVERYTHING = (f"{PACKAGE}.NestedNamespacesTests", f"{PACKAGE}.RESTCompatibilityKitViewCatalogTests")
ABILITIES = {
    "rck.local": "false",
    "rck.requires-namespace-create": "true",
    "rck.supports-serverside-retry": "true",
    "rck.overrides-requested-location": "false",
    "rck.supports-names-with-dot": "true",
    "rck.supports-variant": "true",
}
"""What the kit asks about a catalog before it decides what to test; `local` would start a server of its own."""
_LAUNCHER = "org.junit.platform.console.ConsoleLauncher"
_TIMEOUT_S = 1500


class KitFailed(AssertionError):
    """The kit could not be fetched or did not run; the message holds its output."""


@dataclass(frozen=True)
class Outcome:
    """`told` are the names of the tests that failed, with their messages; `console` is all that the kit printed."""

    passed: int
    failed: int
    skipped: int
    told: tuple[str, ...]
    console: str

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run(uri: str, warehouse: str, token: str, *, reports: Path, select: Sequence[str] = EVERYTHING) -> Outcome:
    """Run classes, or single methods (`Class#method`), against the catalog at `uri`; its reports go to `reports`."""
    jars, java = provide(), _jdk_tool("java")
    reports.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lw-kit-") as classes:
        _compile(jars, Path(classes))
        command = [java, "-Xmx1g", *(f"-D{name}={value}" for name, value in ABILITIES.items())]
        command += [
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp",
            f"{classes}:{jars}/*",
            _LAUNCHER,
            "execute",
        ]
        command += ["--details=testfeed", "--disable-ansi-colors", "--disable-banner", f"--reports-dir={reports}"]
        command += [f"--select-{'method' if '#' in each else 'class'}={each}" for each in select]
        environment = _environment(uri, warehouse, token)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    return _outcome(reports, done)


def _environment(uri: str, warehouse: str, token: str) -> Mapping[str, str]:
    """The kit reads the properties of its client from `CATALOG_*`, and from nothing else."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CATALOG_")}
    return inherited | {"CATALOG_URI": uri, "CATALOG_WAREHOUSE": warehouse, "CATALOG_TOKEN": token}


def _outcome(reports: Path, done: "subprocess.CompletedProcess[str]") -> Outcome:
    console = done.stdout + done.stderr
    found = sorted(reports.glob("TEST-*.xml"))
    if not found:
        raise KitFailed(f"The kit ended with {done.returncode} and no report:\n{console[-4000:]}")
    suites = [ET.parse(each).getroot() for each in found]  # noqa: S314 we made it ourselves

    def total(name: str) -> int:
        return sum(int(suite.get(name, "0")) for suite in suites)

    failed = total("failures") + total("errors")
    skipped = total("skipped")
    told = tuple(_told(suites))
    if done.returncode != 0 and failed == 0:  # a class that cannot start has no tests to fail
        failed, told = 1, (*told, f"the kit ended with {done.returncode}")
    return Outcome(total("tests") - failed - skipped, failed, skipped, told, console)


def _told(suites: Sequence[ET.Element]) -> Iterator[str]:
    for suite in suites:
        for case in suite.iter("testcase"):
            for kind in ("failure", "error"):
                if (why := case.find(kind)) is not None:
                    yield f"{case.get('name')}: {(why.get('message') or why.get('type') or '')[:500]}"


def provide() -> Path:
    """The folder of the jars that `pom.xml` names, fetched if it is not in the cache. `KitFailed` if it cannot be."""
    return maven.jars(POM, name="compatibility-kit", error=KitFailed)


def _compile(jars: Path, classes: Path) -> None:
    command = [_jdk_tool("javac"), "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), *map(str, SOURCES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KitFailed(f"The tests of ours cannot be compiled:\n{done.stdout}{done.stderr}")


def _jdk_tool(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin" if home else None)
    if found is None:
        raise KitFailed(f"There is no `{name}` in {'JAVA_HOME' if home else 'PATH'}: install a JDK 17.")
    return found
