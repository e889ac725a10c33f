"""What the soak runs against: a database, two replicas behind networks of their own, workers, an issuer, a small disk."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from standalone import ports
from standalone.commands import AUDIENCE, lakewarden_command
from standalone.errors import EmbeddedError
from standalone.issuer.clients import Client, Clients
from standalone.issuer.state import StateDir
from standalone.postgres import EmbeddedPostgres
from standalone.process import ManagedProcess
from tests.integration.replicas.pair import Person, signed_in_as
from tests.servers.issuer import run_issuer
from tests.servers.lakewarden_serve import LakewardenServer

PEOPLE = 4
DISK_MIB = 2048
_ROOT = Path(__file__).parents[2]
_RESTART_S = 60.0
_STARTING_S = 30.0
# a commit that was acknowledged survives the death of the server's processes; of the machine it need not
_POSTGRES = {"max_connections": "300", "synchronous_commit": "on"}


@dataclass
class Network:
    """Between one replica and the database."""

    port: int
    target: int
    log: Path
    process: ManagedProcess | None = field(default=None, repr=False)

    def start(self) -> None:
        environment = os.environ | {"PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'platform'}"}
        command = [sys.executable, "-m", "tests.soak.proxy", str(self.port), str(self.target)]
        self.process = ManagedProcess("the network", command, log=self.log, environment=environment, directory=_ROOT)
        self.process.start()
        deadline = time.monotonic() + _RESTART_S
        while not ports.is_taken(self.port):
            assert time.monotonic() < deadline, self.process.log_tail()
            time.sleep(0.02)

    def cut(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.stop()


@dataclass
class Worker:
    """`lakewarden work`, with the settings of the replicas; straight to the database."""

    settings: dict[str, str]
    log: Path
    process: ManagedProcess | None = field(default=None, repr=False)
    _started_at: float = 0.0

    @property
    def is_starting(self) -> bool:
        """Whether it may not have begun to work."""
        return time.monotonic() - self._started_at < _STARTING_S

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LAKEWARDEN__")}
        self.process = ManagedProcess(
            "lakewarden work",
            lakewarden_command("work"),
            log=self.log,
            environment=environment | self.settings | {"PYTHONUNBUFFERED": "1"},
            directory=Path("/"),
            grace_s=30.0,
        )
        self.process.start()
        self._started_at = time.monotonic()


@dataclass
class Stack:
    """`people[0]` is the administrator, whom all clients are; the others have only what they are granted.

    `hot` and `calm` are the paths of tables that faults may commit to; a frozen server may hold only `hot`.
    """

    postgres: EmbeddedPostgres
    replicas: Sequence[LakewardenServer]
    networks: Sequence[Network]
    workers: Sequence[Worker]
    people: Sequence[Person]
    disk: Path
    is_small_disk: bool
    hot: str = ""
    calm: str = ""

    @staticmethod
    def pids_of(replica: LakewardenServer) -> list[int]:
        """The process that was started, then those that it has started itself."""
        main = replica.process.pid
        return [main, *children(main)]

    @property
    def ports(self) -> list[int]:
        return [int(each.uri.rpartition(":")[2]) for each in self.replicas]

    @contextmanager
    def database(self) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
        """A session of our own, straight to the database."""
        with psycopg.connect(self.postgres.url, autocommit=True, application_name="soak") as connection:
            yield connection

    def restart_postgres(self) -> None:
        deadline = time.monotonic() + _RESTART_S
        while True:
            self.postgres.stop()
            try:
                self.postgres.start()
            except EmbeddedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return


@contextmanager
def started(directory: Path, *, workers: int, processes: int = 1, disk_mib: int = DISK_MIB) -> Iterator[Stack]:
    """All of it, running, in `directory`; the processes end with the block. `processes` are those of each replica."""
    directory.chmod(0o711)  # root's database runs as another user, who must be able to enter
    signed_in = _people(directory / "issuer")
    with (
        run_issuer(directory / "issuer", token_lifetime_s=86_400) as issuer,
        _disk(directory / "warehouses", disk_mib) as is_small,
        EmbeddedPostgres(directory / "postgres", port=ports.free_port(), durable=False, settings=_POSTGRES) as postgres,
    ):
        admin = issuer.identities.admin
        people = [signed_in_as(issuer, admin.client_id, admin.client_secret)]
        people += [signed_in_as(issuer, *each) for each in signed_in]
        ours = {
            "LAKEWARDEN__SERVER__HOST": ports.HOST,
            "LAKEWARDEN__SERVER__PROCESSES": str(processes),
            "LAKEWARDEN__STORAGE__LOCAL_ROOTS": str(directory / "warehouses"),
            "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url,
            "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE,
        }
        straight = ours | {"LAKEWARDEN__DATABASE__URL": postgres.url}
        networks = [Network(ports.free_port(), postgres.port, directory / f"network-{each}.log") for each in "ab"]
        replicas = [
            LakewardenServer(
                ours | {"LAKEWARDEN__DATABASE__URL": _through(postgres.url, network.port, f"replica_{name}")},
                directory / "warehouses",
                directory / f"replica-{name}.log",
            )
            for name, network in zip("ab", networks, strict=True)
        ]
        at_work = [Worker(straight, directory / f"worker-{number}.log") for number in range(workers)]
        stack = Stack(postgres, replicas, networks, at_work, people, directory / "warehouses", is_small)
        try:
            _start(stack)
            yield stack
        finally:
            _stop(stack)


def _start(stack: Stack) -> None:
    for network in stack.networks:
        network.start()
    stack.replicas[0].run("migrate")
    stack.replicas[0].bootstrap(stack.people[0].id)
    for replica in stack.replicas:
        replica.start()
    for worker in stack.workers:
        worker.start()


def _stop(stack: Stack) -> None:
    for process in [*(each.process for each in stack.workers), *(each.process for each in stack.networks)]:
        if process is not None:
            if not process.exited:
                os.kill(process.pid, signal.SIGCONT)
            process.stop()
    for replica in stack.replicas:
        replica.stop()


def _through(url: str, port: int, name: str) -> str:
    parts = urlsplit(url)
    place = f"{parts.netloc.rpartition(':')[0]}:{port}"
    return urlunsplit(parts._replace(netloc=place, query=f"application_name={name}"))


def _people(state_dir: Path) -> list[tuple[str, str]]:
    state = StateDir(state_dir)
    names = [f"person-{number}" for number in range(PEOPLE)]
    with state.locked():
        made = Clients(state).ensure(*(_client(name) for name in names))
    return [(each.client_id, str(each.client_secret)) for each in made]


def _client(name: str) -> Client:
    scopes = ("catalog",)
    secret = secrets.token_urlsafe(16)
    return Client(
        client_id=name, client_secret=secret, grant_types=("client_credentials",), scopes=scopes, default_scopes=scopes
    )


@contextmanager
def _disk(place: Path, size_mib: int) -> Iterator[bool]:
    """A disk of that size for the warehouses alone; False (and an ordinary folder) where only root may make one."""
    place.mkdir(parents=True)
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or mount is None or umount is None:
        yield False
        return
    command = [mount, "-t", "tmpfs", "-o", f"size={size_mib}m,mode=755", "lakewarden-soak", str(place)]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run([umount, "-l", str(place)], check=True)


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry.name))
    return found
