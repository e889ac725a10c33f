"""The location of PostgreSQL's data: in the data directory or, for root, where the server's account has access."""

import hashlib
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from standalone import accounts
from standalone.accounts import Account
from standalone.errors import EmbeddedError
from standalone.private_files import write_private

SHARED = Path("/var/lib/lakewarden")
_NOTE = "postgres.where"


@dataclass(frozen=True)
class Home:
    """The paths of one embedded server."""

    data_dir: Path
    base: Path
    account: Account | None

    @property
    def cluster(self) -> Path:
        """PostgreSQL's data folder; it exists only if it is complete."""
        return self.base / "postgres"

    @property
    def unfinished(self) -> Path:
        """The folder of a new cluster while it is being created."""
        return self.base / "postgres.new"

    @property
    def log(self) -> Path:
        return self.data_dir / "logs" / "postgres.log"

    def give(self, path: Path) -> None:
        """Make the server's account the owner of `path`; links are not followed, because root must not give away their
        target.
        """
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid, follow_symlinks=False)

    def password(self) -> str:
        """The superuser's password, generated at the first call and stored in a file of mode 0600."""
        path = self.data_dir / "postgres.password"
        if path.exists():
            return path.read_text().strip()
        if self.cluster.exists():
            raise EmbeddedError(
                f"The password of the database in {self.cluster} is gone: put {path} back, "
                f"or delete {self.cluster} to start with an empty database."
            )
        password = secrets.token_urlsafe(24)
        write_private(path, password + "\n")
        return password


def find(data_dir: Path, *, shared: Path = SHARED) -> Home:
    """The home of `data_dir`'s server; `data_dir` exists.

    Never changes the mode of a folder that it did not make: where the account cannot go into `data_dir`, the
    home is `shared`/<hash of data_dir>, and a note in `data_dir` says so.
    """
    inside = Home(data_dir, data_dir, accounts.for_server(data_dir / "postgres"))
    if inside.account is None or accounts.can_own(inside.account, data_dir):
        return inside
    base = shared / hashlib.sha256(os.fsencode(data_dir.resolve())).hexdigest()[:16]
    outside = Home(data_dir, base, accounts.for_server(base / "postgres"))
    _prepare_shared(outside, shared)
    _link(outside)
    return outside


def _prepare_shared(home: Home, shared: Path) -> None:
    try:
        home.base.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedError(
            f"PostgreSQL cannot use {home.data_dir} as user {_name(home)}, and {home.base} cannot be made: "
            f"{error.strerror}. Give a directory that this user can enter with --data-dir."
        ) from error
    for folder in (shared, home.base):
        if folder.stat().st_uid != os.geteuid() or folder.is_symlink():
            raise EmbeddedError(f"{folder} is not root's, so it is not safe to use: remove it and start again.")
    if not accounts.can_own(home.account, home.base):
        raise EmbeddedError(
            f"PostgreSQL can use neither {home.data_dir} nor {home.base} as user {_name(home)}: "
            "give a directory that this user can enter with --data-dir."
        )


def _link(home: Home) -> None:
    """Write the note that names the data directory. Data without it belong to a deleted one and are moved aside."""
    note = home.data_dir / _NOTE
    if (home.data_dir / "postgres").exists():
        raise EmbeddedError(
            f"The database in {home.data_dir / 'postgres'} is out of reach of user {_name(home)}, as whom it "
            "runs: let that user enter the directories above it, or give another directory with --data-dir."
        )
    if note.exists():
        return
    if home.cluster.exists():
        previous = home.base / "postgres.previous"
        shutil.rmtree(previous, ignore_errors=True)
        home.cluster.rename(previous)
    note.write_text(
        f"The PostgreSQL data of this directory are in {home.base}:\n"
        f"PostgreSQL refuses to run as root, and the user {_name(home)} cannot enter this directory.\n"
        "Delete both to start afresh.\n"
    )


def _name(home: Home) -> str:
    return home.account.name if home.account else "root"
