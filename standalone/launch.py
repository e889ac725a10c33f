"""Starts a program as the given user, so that it ends together with its parent process.

`ManagedProcess` runs this file as a script: `python -I -S launch.py PARENT SIGNAL UID GID COMMAND...`.
It is a program of its own, because code between fork and exec is not safe in a process that has threads.
The pid stays.
Standard library only: it may run where our packages cannot be read.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_KEEP_USER = "-"
_CANNOT_RUN = 126


def become_user(uid: int, gid: int) -> None:
    """Drop root permanently; groups first, because an unprivileged user cannot change them."""
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def die_with_parent(parent: int, number: int) -> None:
    """Ask Linux for signal `number` at the end of the parent's thread; elsewhere there is only the guardian.

    Called after the change of user, which would clear it. The parent may have died before: leave at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)


def main(arguments: list[str]) -> int:
    parent, number, uid, gid, *command = arguments
    if uid != _KEEP_USER:
        become_user(int(uid), int(gid))
    die_with_parent(int(parent), int(number))
    try:
        os.execv(command[0], command)  # noqa: S606 (no shell is needed)
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]}: {error.strerror}\n")
    return _CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
