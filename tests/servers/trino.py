"""A real Trino as an outside program: one coordinator with one Iceberg REST catalog, spoken to over its HTTP protocol.

Access control may be another program's (Open Policy Agent).

Its tarball comes from Maven Central once and is kept, less what Iceberg does not need, in the cache of the project.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from lakewarden.cache_folder import cache_folder
from standalone import staging
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess

VERSION = "476"
SHA256 = "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f"
JAVA_NEEDED = 24
_ANNOUNCED_S = 60.0
_PLUGINS = ("iceberg", "opa")
_KEPT = ("bin", "lib", *(f"plugin/{name}" for name in _PLUGINS))
_CATALOG = "lake"
_MAIN = "io.trino.server.TrinoServer"
_JVM = (
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+EnableDynamicAgentLoading",
    "-Djdk.attach.allowAttachSelf=true",
    "-Dfile.encoding=UTF-8",
    "--add-modules=jdk.incubator.vector",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)

Row = tuple[Any, ...]


class TrinoFailed(AssertionError):
    """It cannot be had, did not start, or refused a statement; the message holds what it said."""


@dataclass(frozen=True)
class TrinoServer:
    """A running coordinator; statements run in catalog `lake`, one after the other."""

    uri: str
    process: ManagedProcess

    def run(self, statement: str, *, user: str = "conformance") -> list[Row]:
        """Run one SQL statement to its end and give its rows. `TrinoFailed` with the engine's own message.

        A coordinator that has just started, on a busy machine, may not have announced itself as a worker yet.
        """
        deadline = time.monotonic() + _ANNOUNCED_S
        while True:
            try:
                return self._run(statement, user=user)
            except TrinoFailed as failed:
                if "NO_NODES_AVAILABLE" not in str(failed) or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def _run(self, statement: str, *, user: str) -> list[Row]:
        with urllib3.PoolManager(retries=False, timeout=120.0) as http:
            headers = {"X-Trino-User": user, "X-Trino-Catalog": _CATALOG, "X-Trino-Time-Zone": "UTC"}
            page = _page(http.request("POST", f"{self.uri}/v1/statement", body=statement, headers=headers))
            rows = [tuple(row) for row in page.get("data", [])]
            while next_uri := page.get("nextUri"):
                page = _page(http.request("GET", next_uri, headers=headers))
                rows += [tuple(row) for row in page.get("data", [])]
        if "error" in page:
            told = page["error"]
            raise TrinoFailed(f"{told['errorName']}: {told['message']}\n{statement}\n{_causes(told)}")
        return rows

    def value(self, statement: str) -> Any:
        """The only column of the only row."""
        ((value,),) = self.run(statement)
        return value


def _page(answer: urllib3.BaseHTTPResponse) -> dict[str, Any]:
    if answer.status != 200:
        raise TrinoFailed(f"Trino answered {answer.status}: {answer.data[:500]!r}")
    return dict(json.loads(answer.data))


def _causes(told: Mapping[str, Any]) -> str:
    lines, cause = [], told.get("failureInfo")
    while cause:
        lines.append(f"  {cause.get('type')}: {cause.get('message')}")
        cause = cause.get("cause")
    return "\n".join(lines)


@contextmanager
def start(
    catalog: Mapping[str, str], *, access_control: Mapping[str, str] | None = None, timeout_s: float = 180.0
) -> Iterator[TrinoServer]:
    """A running Trino whose catalog `lake` has these properties (of the Iceberg connector), stopped at the end.

    `access_control` are the properties of another authority than Trino itself, such as `access-control.name=opa`.
    """
    java, home = find_java(), distribution()
    with tempfile.TemporaryDirectory(prefix="lw-trino-") as directory:
        port = free_port()
        uri = f"http://{HOST}:{port}"
        _configure(Path(directory), uri=uri, port=port, catalog=catalog)
        if access_control is not None:
            _write(Path(directory, "etc", "access-control.properties"), access_control)
        process = ManagedProcess(
            "trino",
            [java, *_JVM, f"-Dconfig={directory}/etc/config.properties", "-cp", f"{home}/lib/*", _MAIN],
            log=Path(directory, "trino.log"),
            directory=Path(directory),  # it writes `var` where it is started
            grace_s=30.0,
        )
        with process:
            _await_started(process, uri, timeout_s=timeout_s)
            yield TrinoServer(uri, process)


def _configure(directory: Path, *, uri: str, port: int, catalog: Mapping[str, str]) -> None:
    catalogs = directory / "etc" / "catalog"
    catalogs.mkdir(parents=True)
    server = {
        "node.environment": "conformance",
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "node.internal-address": HOST,
        "node.bind-ip": HOST,
        "http-server.http.port": str(port),
        "discovery.uri": uri,
        "catalog.config-dir": str(catalogs),
        "plugin.dir": str(distribution() / "plugin"),
        "query.max-memory-per-node": "300MB",
        "task.concurrency": "2",
        "catalog.management": "static",
        "failure-detector.enabled": "false",
    }
    _write(directory / "etc" / "config.properties", server)
    _write(catalogs / f"{_CATALOG}.properties", {"connector.name": "iceberg", **catalog})


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.touch(mode=0o600)
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def _await_started(process: ManagedProcess, uri: str, *, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    with urllib3.PoolManager(retries=False, timeout=5.0) as http:
        while True:
            if process.exited or time.monotonic() > deadline:
                raise TrinoFailed(f"trino {process.ended()} before it was ready:\n{process.log_text()}")
            try:
                answer = http.request("GET", f"{uri}/v1/info")
            except urllib3.exceptions.HTTPError:
                time.sleep(0.2)
                continue
            if answer.status == 200 and json.loads(answer.data)["starting"] is False:
                return
            time.sleep(0.2)


def distribution() -> Path:
    """The folder of Trino `VERSION` in the cache, fetched by Maven if need be (0.8 GB). `TrinoFailed` if it is not."""
    home = cache_folder() / "trino" / "-".join([VERSION, *_PLUGINS])
    if not home.is_dir():
        with staging.locked(home.parent) as folder:
            if not home.is_dir():  # another process was not quicker
                _unpack(_download(folder), folder / "all")
                _keep_needed(folder / "all", folder / "kept").rename(home)
    return home


def _download(staging: Path) -> Path:
    artifact = f"io.trino:trino-server:{VERSION}:tar.gz"
    local = ["-Dmdep.useBaseVersion=true", f"-Dmaven.repo.local={staging / 'm2'}"]
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={staging}", *local]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=staging)
    except FileNotFoundError as error:
        raise TrinoFailed("Maven (mvn) is not installed: it fetches Trino's tarball from Maven Central.") from error
    tarball = staging / f"trino-server-{VERSION}.tar.gz"
    if done.returncode != 0 or not tarball.is_file():
        raise TrinoFailed(f"{artifact} could not be fetched:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    with tarball.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != SHA256:
        raise TrinoFailed(f"{artifact} has sha256 {digest}, expected {SHA256}.")
    return tarball


def _unpack(tarball: Path, folder: Path) -> None:
    # whole, although little is kept: the jars of a plugin are hard links to those of another
    folder.mkdir()
    subprocess.run(["tar", "-xzf", tarball, "-C", folder, "--strip-components=1"], check=True)


def _keep_needed(unpacked: Path, kept: Path) -> Path:
    for part in _KEPT:
        (kept / part).parent.mkdir(parents=True, exist_ok=True)
        (unpacked / part).rename(kept / part)
    return kept


def find_java() -> Path:
    """The first Java from `JAVA_NEEDED` on: $TRINO_JAVA_HOME, $JAVA_HOME, PATH, the usual folder of Linux."""
    homes = [Path(os.environ[name]) for name in ("TRINO_JAVA_HOME", "JAVA_HOME") if os.environ.get(name)]
    on_path = shutil.which("java")
    candidates = [home / "bin/java" for home in homes] + ([Path(on_path)] if on_path else [])
    candidates += sorted(Path("/usr/lib/jvm").glob("*/bin/java"), reverse=True)
    seen = {str(java): _major(java) for java in candidates if java.is_file()}
    for java, major in seen.items():
        if major >= JAVA_NEEDED:
            return Path(java)
    raise TrinoFailed(
        f"Trino {VERSION} needs Java {JAVA_NEEDED} or later: set TRINO_JAVA_HOME. Found: {seen or 'none'}"
    )


def _major(java: Path) -> int:
    done = subprocess.run([java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False)
    found = [line.partition("=")[2] for line in done.stderr.splitlines() if "java.specification.version" in line]
    return int(found[0].strip().rpartition(".")[2]) if found else 0
