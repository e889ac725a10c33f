"""Finds free ports on 127.0.0.1, and the program that uses a taken one; for everything that listens."""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

HOST = "127.0.0.1"
_LISTENING = "0A"
_TCP_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def free_ports(count: int) -> list[int]:
    """`count` different ports that are free now; another program may take one before the caller does."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [int(one.getsockname()[1]) for one in sockets]


def free_port() -> int:
    return free_ports(1)[0]


def is_taken(port: int) -> bool:
    """Whether a server could not listen on this port of 127.0.0.1.

    Connections of an earlier server that are still being closed do not count. Other refusals of the system,
    such as `PermissionError`, are raised as they are.
    """
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            raise
    return False


def find_holder(port: int) -> str | None:
    """The program that listens on `port`, as "python3 (pid 4711)"; None if the system does not provide it.

    Linux tells it of our own processes, and to root of all.
    """
    inodes = set(_listening_inodes(port))
    for descriptor in _descriptors() if inodes else ():
        try:
            if str(descriptor.readlink()) in inodes:
                pid = descriptor.parts[2]
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                return f"{name} (pid {pid})"
        except OSError:  # it has ended, or access is denied
            continue
    return None


def _listening_inodes(port: int) -> Iterator[str]:
    for table in _TCP_TABLES:
        try:
            rows = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            # sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
            fields = row.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield f"socket:[{fields[9]}]"


def _descriptors() -> Iterator[Path]:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                yield from (process / "fd").iterdir()
            except OSError:
                continue
