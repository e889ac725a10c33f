"""A real Keycloak as an outside program: `with start() as keycloak`, then realms, tokens and the admin REST API.

Its zip comes from Maven Central once; the cache of the project keeps it built, with an empty database. A run links to
that, copies the database (1 MB) and answers after about eight seconds.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from lakewarden.cache_folder import cache_folder
from pipeline.spark.errors import JavaNotFound
from pipeline.spark.java import find_java
from standalone import staging
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess

VERSION = "26.7.3"
SHA256 = "27a6535553c3cdcd083872ba40629efafb3475e3b758e0c6f691395561dd0f1f"
REALM_FILE = Path(__file__).with_name("keycloak-realm.json")
SECRET_SUFFIX = "-secret"
_BUILD = ("build", "--db=dev-file", "--health-enabled=false", "--metrics-enabled=false")
_START = ("start", "--optimized", "--http-enabled=true", "--hostname-strict=false", "--cache=local")
_LINKED = ("lib", "conf", "providers", "themes")
_ADMIN = {"KC_BOOTSTRAP_ADMIN_USERNAME": "admin", "KC_BOOTSTRAP_ADMIN_PASSWORD": "admin"}
_OPENED = ("java.util", "java.util.concurrent", "java.security", "java.lang")
# what its own script sets, less the garbage collector and the compiler for long runs
_JVM = (
    "-Xms128m",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dfile.encoding=UTF-8",
    "-Duser.language=en",
    "-Duser.country=US",
    "-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
    "-Dquarkus-log-max-startup-records=10000",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--enable-native-access=ALL-UNNAMED",
)
_MAIN = "io.quarkus.bootstrap.runner.QuarkusEntryPoint"


class KeycloakFailed(AssertionError):
    """It cannot be had, did not start, or refused a request; the message holds what it said."""


@dataclass(frozen=True)
class Realm:
    """One realm as its clients and users see it. The secret of every client is `<client id>-secret`."""

    issuer: str

    @property
    def token_endpoint(self) -> str:
        return f"{self.issuer}/protocol/openid-connect/token"

    def endpoint(self, name: str) -> str:
        """Another endpoint of OpenID Connect: `auth`, `auth/device`, `token/introspect`, `logout`, `revoke` …"""
        return f"{self.issuer}/protocol/openid-connect/{name}"

    def ask(self, endpoint: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """POST a form to an endpoint; gives status and JSON (empty when there is none)."""
        status, body = _send("POST", self.endpoint(endpoint), form=form)
        return status, body or {}

    def tokens(self, **form: str) -> dict[str, Any]:
        """The token endpoint's answer to this form. `KeycloakFailed` when it refuses."""
        status, body = self.ask("token", form)
        if status != 200:
            raise KeycloakFailed(f"The token endpoint of {self.issuer} answered {status}: {body}")
        return body

    def client_token(self, client: str, *, scope: str | None = "catalog") -> str:
        """An access token that a confidential client gets for itself (RFC 6749 section 4.4)."""
        form = {"client_id": client, "client_secret": f"{client}{SECRET_SUFFIX}"}
        if scope is not None:
            form["scope"] = scope
        return str(self.tokens(grant_type="client_credentials", **form)["access_token"])


class Keycloak:
    """A Keycloak that can be stopped, started again at the same address with the same data, and frozen."""

    def __init__(self, home: Path) -> None:
        """`home` is a directory of this run; use `start`, which makes it."""
        self._home = home
        self._port = free_port()
        self.uri = f"http://{HOST}:{self._port}"
        self._java = _java()
        self.process = self._child()

    def start(self, *, timeout_s: float = 180.0) -> None:
        """Start it; returns when it answers. `KeycloakFailed` with the end of its log when it does not."""
        self.process = self._child()
        self.process.start()
        try:
            self._await_answer(timeout_s)
        except BaseException:
            self.process.stop()
            raise

    def stop(self) -> None:
        """Stop it in order; its port refuses connections then."""
        self.process.stop()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections and answers nothing (SIGSTOP), as a machine that hangs."""
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    def realm(self, name: str = "lake") -> Realm:
        return Realm(f"{self.uri}/realms/{name}")

    def admin(self, method: str, path: str, body: object = None) -> Any:
        """The admin REST API below `/admin/realms`, `path` such as `/lake/clients`; the answer's JSON or None."""
        # a token each time: rights on a realm are in the tokens that were issued after it was made
        login = {"grant_type": "password", "client_id": "admin-cli", "username": "admin", "password": "admin"}
        token = self.realm("master").tokens(**login)["access_token"]
        status, content = _send(method, f"{self.uri}/admin/realms{path}", json_body=body, token=token)
        if status >= 300:
            raise KeycloakFailed(f"{method} {path} was answered with {status}: {content}")
        return content

    def create_realm(self, name: str = "lake") -> Realm:
        """Make a realm of this name with the clients, roles and users of `keycloak-realm.json`."""
        self.admin("POST", "", {**json.loads(REALM_FILE.read_text()), "realm": name})
        return self.realm(name)

    def _child(self) -> ManagedProcess:
        options = [f"-Dkc.home.dir={self._home}", f"-Djava.io.tmpdir={self._home / 'tmp'}"]
        listen = [f"--http-host={HOST}", f"--http-port={self._port}"]
        return ManagedProcess(
            "keycloak",
            [self._java, *_JVM, *options, "-cp", self._home / "lib/quarkus-run.jar", _MAIN, *_START, *listen],
            log=self._home / "keycloak.log",
            environment=_environment(self._java) | _ADMIN,
            directory=self._home,
            grace_s=30.0,
        )

    def _await_answer(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while True:
            if self.process.exited or time.monotonic() > deadline:
                raise KeycloakFailed(f"{self.process.obituary(when='before it was ready')}")
            try:
                status, _ = _send("GET", f"{self.uri}/realms/master/.well-known/openid-configuration", timeout_s=5.0)
            except urllib3.exceptions.HTTPError:
                status = 0
            if status == 200:
                return
            time.sleep(0.1)


def _send(
    method: str,
    url: str,
    *,
    form: Mapping[str, str] | None = None,
    json_body: object = None,
    token: str | None = None,
    timeout_s: float = 30.0,
) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if form is not None:
        headers["content-type"] = "application/x-www-form-urlencoded"
    body = urlencode(form) if form is not None else None
    with urllib3.PoolManager(retries=False, timeout=timeout_s) as http:
        if json_body is not None:
            answer = http.request(method, url, json=json_body, headers=headers)
        else:
            answer = http.request(method, url, body=body, headers=headers)
    return answer.status, json.loads(answer.data) if answer.data else None


@contextmanager
def start(*, timeout_s: float = 180.0) -> Iterator[Keycloak]:
    """A running Keycloak with an empty database of its own, stopped and forgotten at the end."""
    built = distribution()
    with tempfile.TemporaryDirectory(prefix="lw-keycloak-") as directory:
        keycloak = Keycloak(_copy(built, Path(directory, "home")))
        keycloak.start(timeout_s=timeout_s)
        try:
            yield keycloak
        finally:
            keycloak.stop()


def _copy(built: Path, home: Path) -> Path:
    """A home of its own for one run: what it only reads is linked, what it writes is copied."""
    home.mkdir()
    (home / "tmp").mkdir()
    for name in _LINKED:
        (home / name).symlink_to(built / name)
    shutil.copytree(built / "data", home / "data")
    return home


def distribution() -> Path:
    """The folder of Keycloak `VERSION` in the cache, fetched and built if need be. `KeycloakFailed` if it is not."""
    home = cache_folder() / "keycloak" / VERSION
    with staging.locked(home.parent) as folder:
        if not home.is_dir():
            _build(_unpack(_download(folder), folder)).rename(home)
    return home


def _download(staging: Path) -> Path:
    artifact = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
    local = ["-Dmdep.useBaseVersion=true", f"-Dmaven.repo.local={staging / 'm2'}"]
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={staging}", *local]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=staging)
    except FileNotFoundError as error:
        raise KeycloakFailed("Maven (mvn) is not installed: it fetches Keycloak from Maven Central.") from error
    archive = staging / f"keycloak-quarkus-dist-{VERSION}.zip"
    if done.returncode != 0 or not archive.is_file():
        raise KeycloakFailed(f"{artifact} could not be fetched:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    with archive.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != SHA256:
        raise KeycloakFailed(f"{artifact} has sha256 {digest}, expected {SHA256}.")
    return archive


def _unpack(archive: Path, folder: Path) -> Path:
    shutil.unpack_archive(archive, folder)
    return folder / f"keycloak-{VERSION}"


def _build(home: Path) -> Path:
    """Build it for start, and let it make its database once: that is most of a first start's time."""
    java = _java()
    # its script has lost its x bit on the way through the archive
    command = ["sh", str(home / "bin/kc.sh"), *_BUILD]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment(java))
    if done.returncode != 0:
        raise KeycloakFailed(f"Keycloak could not be built:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    (home / "tmp").mkdir()
    first = Keycloak(home)
    first.start()
    first.stop()
    shutil.rmtree(home / "tmp")
    first.process.log.unlink()
    return home


def _environment(java: Path) -> dict[str, str]:
    """Without the caller's KC_* and JAVA_*: they would change what runs."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return kept | {"JAVA": str(java)}


def _java() -> Path:
    try:
        java = find_java()
    except JavaNotFound:
        java = None
    if java is None or java.is_bundled:
        raise KeycloakFailed(f"Keycloak {VERSION} needs Java 17 or 21: install one and set JAVA_HOME to it.")
    return java.executable
