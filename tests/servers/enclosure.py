"""What a container engine of a test has for itself: a network that leads nowhere, and an end that leaves nothing."""

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
HIERARCHIES: Final = (
    "cpu",
    "cpuacct",
    "cpuset",
    "memory",
    "devices",
    "freezer",
    "blkio",
    "pids",
    "systemd",
    "unified",
)


class EnclosureFailed(AssertionError):
    """A command failed; the message holds what it said."""


@dataclass(frozen=True)
class Network:
    """A network namespace with a loopback of its own."""

    name: str

    @property
    def enter(self) -> tuple[str, ...]:
        """What a command begins with that runs there."""
        return ("/usr/bin/nsenter", f"--net=/run/netns/{self.name}")


@contextmanager
def network() -> Iterator[Network]:
    """It needs root and iproute2."""
    made = Network(f"lw{secrets.token_hex(4)}")
    run("ip", "netns", "add", made.name)
    try:
        run(*made.enter, "ip", "link", "set", "lo", "up")
        yield made
    finally:
        run("ip", "netns", "del", made.name)


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise EnclosureFailed(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")


def end_shims(socket: Path) -> None:
    """What containerd started for containers survives it: end what belongs to the one of this socket."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"containerd-shim-runc-v2") and bytes(socket) in words:
                os.kill(int(process.name), signal.SIGKILL)


def remove_cgroups(roots: Iterable[str]) -> None:
    """These folders in each hierarchy, with what is below them, as far as nothing runs there."""
    for root in [CGROUPS / hierarchy / root for hierarchy in HIERARCHIES for root in roots]:
        for folder, _, _ in os.walk(root, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()


def remove_folder(directory: Path) -> None:
    """Also what is mounted below it."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((each for each in mounts if each.startswith(f"{directory}/")), reverse=True):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
    shutil.rmtree(directory, ignore_errors=True)
