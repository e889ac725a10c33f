"""Processes as /proc shows them: the tree below one, who listens on a port, and the CPU time that they used.

Linux only; `is_supported` says so. Elsewhere nothing is measured but the clients' side.
"""

import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LISTENING = "0A"
_PROC = Path("/proc")


def is_supported() -> bool:
    return sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """`waited_ns`: CPU of its children that have ended."""

    pid: int
    parent: int
    name: str
    waited_ns: int


def stat_of(pid: int) -> ProcessStat | None:
    """None when there is no such process any more."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()  # from field 3 of proc(5) on
    waited = (int(fields[13]) + int(fields[14])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return ProcessStat(pid, int(fields[1]), name, waited)


def snapshot() -> dict[int, ProcessStat]:
    """All processes by pid."""
    found = (stat_of(int(entry.name)) for entry in _PROC.iterdir() if entry.name.isdecimal())
    return {each.pid: each for each in found if each is not None}


def tree(root: int) -> list[ProcessStat]:
    """`root` and all below it; empty when it has ended. Quick: it is read while the measured ones go on."""
    found = [stat] if (stat := stat_of(root)) is not None else []
    for each in found:  # grows while it is walked
        found += [child for pid in _children(each.pid) if (child := stat_of(pid)) is not None]
    return found


def _children(pid: int) -> list[int]:
    """Those that any of its threads started and that have not been waited for."""
    found: list[int] = []
    with suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            with suppress(OSError):
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def cpu_ns(stats: Iterable[ProcessStat]) -> int:
    """User and system time of these processes, in nanoseconds, with that of their children that ended."""
    total = 0
    for each in stats:
        with suppress(OSError):  # it ended meanwhile: its parent has its time
            total += time.clock_gettime_ns(_clock(each.pid))
        total += each.waited_ns
    return total


def _clock(pid: int) -> int:
    """The id of a process's CPU clock, as clock_getcpuclockid(3) makes it: exact, where /proc counts in 10 ms."""
    return (~pid << 3) | 2


def listener(port: int) -> int | None:
    """The process that listens on a TCP port of this machine; the parent if several share it."""
    inodes = {inode for state, local, _, inode in _sockets() if state == _LISTENING and local == port}
    everything = snapshot()
    holders = [pid for pid in everything if inodes & socket_inodes(pid)]
    return next((pid for pid in holders if everything[pid].parent not in holders), None)


def ports_towards(pid: int, remote_port: int) -> set[int]:
    """The local ports of the TCP connections that a process holds to `remote_port`."""
    held = socket_inodes(pid)
    return {local for _, local, remote, inode in _sockets() if remote == remote_port and inode in held}


def environment_of(pid: int) -> dict[str, str]:
    """The variables that a process was started with; empty when permission is denied."""
    try:
        content = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (part.decode(errors="replace").partition("=") for part in content.split(b"\0") if part)
    return {name: value for name, _, value in pairs}


def socket_inodes(pid: int) -> set[str]:
    """The inodes of the sockets that a process holds."""
    found = set()
    with suppress(OSError):  # it ended meanwhile, or permission is denied
        for entry in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                target = str(entry.readlink())
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found


def _sockets() -> list[tuple[str, int, int, str]]:
    """State, local port, remote port and inode of each TCP socket of the machine."""
    found = []
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                ports = [int(address.rpartition(":")[2], 16) for address in fields[1:3]]
                found.append((fields[3], ports[0], ports[1], fields[9]))
    return found
