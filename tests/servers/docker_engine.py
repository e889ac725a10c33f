"""A real Docker engine for tests: dockerd with a containerd of its own, `docker` and Docker Compose.

It runs in a network namespace from which nothing leads out, with folders of its own; `enter` is the command that runs
others there. It needs root, and the packages of `PACKAGES` (Debian's names). `docker.io` is unpacked and not installed:
its service would start an engine for the whole machine.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from standalone.go_programs import GoProgram, pinned_version, provide
from standalone.process import ManagedProcess
from tests.servers import debian, enclosure
from tests.servers.enclosure import Network

PACKAGES: Final = ("containerd", "runc", "iptables", "iproute2")
_MODULE: Final = "github.com/docker/compose/v2"
COMPOSE: Final = GoProgram(
    "docker-compose",
    "docker-compose",
    f"{_MODULE}/cmd",
    stamps={f"{_MODULE}/internal.Version": pinned_version("docker-compose", _MODULE)},
)
_PATIENCE_S: Final = 120.0


class EngineFailed(AssertionError):
    """It did not start, or a command failed; the message holds what it said."""


@dataclass(frozen=True)
class Engine:
    """A running engine."""

    directory: Path
    network: Network
    environment: Mapping[str, str] = field(repr=False)
    """Of commands that use it: `docker` is on its PATH."""

    @property
    def enter(self) -> tuple[str, ...]:
        """What a command begins with that reaches the ports that containers publish."""
        return self.network.enter

    def docker(self, *arguments: str | Path, data: bytes | None = None, timeout_s: float = 600.0) -> str:
        """What `docker` prints; `data` is its standard input. Raises EngineFailed."""
        done = subprocess.run(
            ["docker", *arguments],
            input=data,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=self.environment,
        )
        told = done.stdout.decode(errors="replace")
        if done.returncode != 0:
            raise EngineFailed(f"docker {' '.join(map(str, arguments))}:\n{told}{done.stderr.decode(errors='replace')}")
        return told


@contextmanager
def start() -> Iterator[Engine]:
    """An engine without images, forgotten at the end with all that it ran."""
    if os.geteuid() != 0:
        raise EngineFailed(f"An engine needs root and {', '.join(PACKAGES)}")
    programs = debian.unpacked("docker.io")
    for program, package in (
        ("containerd", "containerd"),
        ("runc", "runc"),
        ("iptables", "iptables"),
        ("ip", "iproute2"),
    ):
        debian.program(program, package=package)
    plugin = provide(COMPOSE)
    # short: the path of a socket has 107 characters at most
    directory = Path(tempfile.mkdtemp(prefix="lw-docker-"))
    with ExitStack() as stack:
        stack.callback(enclosure.remove_folder, directory)
        inside = stack.enter_context(enclosure.network())
        group = f"lwdocker-{inside.name}"
        stack.callback(enclosure.remove_cgroups, [group])
        engine = Engine(directory, inside, _environment(directory, programs, plugin))
        containerd = directory / "containerd.sock"
        stack.callback(enclosure.end_shims, containerd)
        _containerd(stack, engine, containerd)
        _dockerd(stack, engine, programs, containerd, group)
        stack.callback(_end_containers, engine)
        yield engine


def _environment(directory: Path, programs: Path, plugin: Path) -> dict[str, str]:
    folder = directory / "config" / "cli-plugins"
    folder.mkdir(parents=True)
    (folder / "docker-compose").symlink_to(plugin)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DOCKER_", "COMPOSE_"))}
    return kept | {
        "DOCKER_HOST": f"unix://{directory}/docker.sock",
        "DOCKER_CONFIG": str(directory / "config"),
        # builds without an image of a builder, which is nowhere to be had
        "DOCKER_BUILDKIT": "0",
        "PATH": f"{programs}/usr/bin:{programs}/usr/sbin:/usr/sbin:{os.environ['PATH']}",
    }


def _containerd(stack: ExitStack, engine: Engine, socket: Path) -> None:
    at = engine.directory
    (at / "containerd.toml").write_text(
        f"""version = 2
root = "{at}/containerd"
state = "{at}/containerd-state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{socket}"
[debug]
  address = "{at}/containerd-debug.sock"
"""
    )
    command: list[str | Path] = [_found("containerd"), "-c", at / "containerd.toml"]
    _started(stack, engine, "containerd", command, socket)


def _dockerd(stack: ExitStack, engine: Engine, programs: Path, containerd: Path, group: str) -> None:
    at = engine.directory
    (at / "daemon.json").write_text("{}")
    flags = {
        "config-file": at / "daemon.json",
        "containerd": containerd,
        "data-root": at / "data",
        "exec-root": at / "run",
        "pidfile": at / "docker.pid",
        "host": f"unix://{at}/docker.sock",
        "group": "root",
        "cgroup-parent": f"/{group}",
        "exec-opt": "native.cgroupdriver=cgroupfs",
        "storage-driver": "overlay2",
        "userland-proxy-path": programs / "usr" / "sbin" / "docker-proxy",
    }
    command: list[str | Path] = [
        programs / "usr" / "sbin" / "dockerd",
        *(f"--{key}={value}" for key, value in flags.items()),
    ]
    _started(stack, engine, "dockerd", command, at / "docker.sock")
    deadline = time.monotonic() + _PATIENCE_S
    while subprocess.run(["docker", "info"], capture_output=True, check=False, env=engine.environment).returncode:
        if time.monotonic() > deadline:
            raise EngineFailed(f"dockerd is not ready:\n{(at / 'dockerd.log').read_text(errors='replace')[-4000:]}")
        time.sleep(0.2)


def _started(stack: ExitStack, engine: Engine, name: str, command: list[str | Path], socket: Path) -> None:
    process = ManagedProcess(
        name,
        [*engine.enter, *command],
        log=engine.directory / f"{name}.log",
        environment=engine.environment,
        grace_s=60.0,
    )
    stack.enter_context(process)
    deadline = time.monotonic() + _PATIENCE_S
    while not socket.exists():
        if process.exited or time.monotonic() > deadline:
            raise EngineFailed(process.obituary(when="before it was ready"))
        time.sleep(0.1)


def _end_containers(engine: Engine) -> None:
    if containers := engine.docker("ps", "--all", "--quiet").split():
        engine.docker("rm", "--force", "--volumes", *containers)


def _found(program: str) -> str:
    path = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
    if path is None:
        raise EngineFailed(f"{program} is missing: apt-get install {' '.join(PACKAGES)}")
    return path
