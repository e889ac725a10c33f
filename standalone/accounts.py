"""The system user that a server runs as: PostgreSQL does not run as root, so root uses an unprivileged account."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from standalone.errors import EmbeddedError

_UNPRIVILEGED = "nobody"
_PROBE = 'cd -- "$1" && : > probe'


@dataclass(frozen=True)
class Account:
    """A system user that a child process runs as."""

    name: str
    uid: int
    gid: int

    @classmethod
    def of(cls, entry: pwd.struct_passwd) -> "Account":
        return cls(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


def for_server(existing: Path) -> Account | None:
    """The account to run a server as: None when we are not root and so run it as ourselves.

    As root: the owner of the data in `existing`, if it was made by a plain user, else `nobody`.
    """
    if os.geteuid() != 0:
        return None
    if existing.exists() and (owner := existing.stat().st_uid) != 0:
        try:
            return Account.of(pwd.getpwuid(owner))
        except KeyError:
            return Account(name=str(owner), uid=owner, gid=existing.stat().st_gid)
    try:
        return Account.of(pwd.getpwnam(_UNPRIVILEGED))
    except KeyError:
        raise EmbeddedError(
            "PostgreSQL refuses to run as root, and this system has no user 'nobody' to run it as: "
            "start this command as an ordinary user."
        ) from None


def can_run(account: Account | None, program: Path) -> bool:
    """Whether the account can execute `program` with all its libraries."""
    return _succeeds(account, [str(program), "--version"])


def can_own(account: Account | None, directory: Path) -> bool:
    """Whether the account can own and use a folder in `directory`; tries it with a temporary one."""
    if account is None:
        return True
    trial = directory / f".probe-{os.getpid()}"
    trial.mkdir(mode=0o700)
    try:
        os.chown(trial, account.uid, account.gid, follow_symlinks=False)
        return _succeeds(account, ["/bin/sh", "-c", _PROBE, "sh", str(trial)])
    except OSError:  # the file system does not support owners
        return False
    finally:
        (trial / "probe").unlink(missing_ok=True)
        trial.rmdir()


def _succeeds(account: Account | None, command: list[str]) -> bool:
    try:
        done = subprocess.run(
            command,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError:  # missing, not accessible or not executable
        return False
    return done.returncode == 0
