"""Fetches one jar by its Maven coordinates with the Apache Ivy that pyspark ships; the jar cache calls it.

Ivy knows the public repository by itself. An operator may name another one by `LAKEWARDEN_MAVEN_MIRROR`.
"""

import os
import re
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from pipeline.spark.artifacts import Artifact
from pipeline.spark.children import die_with_parent
from pipeline.spark.errors import JarUnavailable
from pipeline.spark.jars import MIRROR_VARIABLE, jar_path
from pipeline.spark.java import Java
from pipeline.spark.jvm import spark_home
from pipeline.spark.trust import trust_options

CONNECT_TIMEOUT_S = 20
READ_TIMEOUT_S = 60
POLL_S = 0.2
REPORT_S = 2.0
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class IvyFetcher:
    """`fetcher(artifact, folder)` downloads the jar below `folder`; `progress` gets a line every 2 s."""

    java: Java
    cache: Path
    mirror: str | None = None
    progress: Callable[[str], None] = lambda _line: None

    def __call__(self, artifact: Artifact, folder: Path) -> Path:
        """The downloaded jar's path; its bytes are not checked here. Raises `JarUnavailable`."""
        self.progress(f"fetching {artifact.coordinates} ({artifact.size // MIB} MiB)")
        with tempfile.TemporaryFile() as output, self._running(artifact, folder, output) as child:
            self._watch(child, artifact, folder)
            if child.returncode:
                output.seek(0)
                said = output.read().decode(errors="replace")
                raise JarUnavailable(self._explain(artifact, said))
        return folder / artifact.file_name

    @contextmanager
    def _running(self, artifact: Artifact, folder: Path, output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
        child = subprocess.Popen(
            self._command(artifact, folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent(),  # noqa: PLW1509  only sets a flag of the child; opened before the fork
        )
        try:
            yield child
        finally:
            child.kill()
            child.wait()

    def _command(self, artifact: Artifact, folder: Path) -> list[str]:
        ivy = next((spark_home() / "jars").glob("ivy-*.jar"))
        command = [str(self.java.executable), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [f"-Dsun.net.client.defaultConnectTimeout={CONNECT_TIMEOUT_S * 1000}"]
        command += [f"-Dsun.net.client.defaultReadTimeout={READ_TIMEOUT_S * 1000}"]
        command += [f"-Divy.default.ivy.user.dir={folder}"]  # not the user's own settings and caches
        command += [*trust_options(self.java, cache=self.cache), *_proxy_options()]
        command += ["-cp", str(ivy), "org.apache.ivy.Main", "-error", "-cache", str(folder / "ivy")]
        if self.mirror:
            command += ["-settings", str(_mirror_settings(self.mirror, folder))]
        command += ["-notransitive", "-dependency", artifact.group, artifact.module, artifact.version]
        return [*command, "-retrieve", f"{folder}/[artifact]-[revision].[ext]"]

    def _watch(self, child: subprocess.Popen[bytes], artifact: Artifact, folder: Path) -> None:
        reported = time.monotonic()
        while child.poll() is None:
            time.sleep(POLL_S)
            if time.monotonic() - reported >= REPORT_S:
                reported = time.monotonic()
                done = max((part.stat().st_size for part in folder.glob("ivy/**/*.jar*")), default=0)
                self.progress(f"fetching {artifact.module}: {done // MIB} of {artifact.size // MIB} MiB")

    def _explain(self, artifact: Artifact, said: str) -> str:
        reasons = re.findall(r"\b([\w.]+Exception: [^()\n]+|connection refused|java\.net\.\w+)", said)
        reason = f" ({reasons[0].strip()})" if reasons else ""
        where = f"the mirror {_without_password(self.mirror)}" if self.mirror else "the public Maven repository"
        target = jar_path(artifact, cache=self.cache)
        return (
            f"{artifact.coordinates} could not be fetched from {where}{reason}: put the jar at {target}, "
            f"or name a reachable mirror by {MIRROR_VARIABLE}=https://..., and try again."
        )


def mirror_from_environment() -> str | None:
    return os.environ.get(MIRROR_VARIABLE) or None


def _mirror_settings(mirror: str, folder: Path) -> Path:
    settings = folder / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="mirror"/><resolvers>'
        f'<ibiblio name="mirror" m2compatible="true" root={quoteattr(mirror)}/>'
        "</resolvers></ivysettings>\n",
        encoding="utf-8",
    )
    return settings


def _without_password(address: str | None) -> str:
    parts = urlsplit(address or "")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _proxy_options() -> list[str]:
    """Java does not read HTTPS_PROXY and its kin; Python does."""
    options = []
    proxies = urllib.request.getproxies()
    for scheme in ("http", "https"):
        proxy = urlsplit(proxies.get(scheme, ""))
        if proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    if options and (direct := proxies.get("no")):
        hosts = "|".join(f"*{host}" if host.startswith(".") else host for host in direct.split(",") if host)
        options.append(f"-Dhttp.nonProxyHosts={hosts}")
    return options
