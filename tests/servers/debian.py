"""Programs of Debian's packages: as root they are installed when they are missing, else the lane fails by name."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from lakewarden.cache_folder import cache_folder
from standalone import staging

_TIMEOUT_S = 300


@cache
def program(name: str, *, package: str) -> str:
    """Its path."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "--yes", "--no-install-recommends", package]
        # lanes run side by side, and apt-get does not wait for another one
        with staging.locked(cache_folder() / "debian"):
            for command in (["apt-get", "update"], install):
                subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S)
        found = shutil.which(name, path="/usr/sbin:/usr/bin")
    assert found is not None, f"{name} is missing: install Debian's package `{package}`"
    return found


@cache
def unpacked(package: str) -> Path:
    """A folder of the cache with the files of a package, which is not installed; what it depends on must be there."""
    home = cache_folder() / "debian" / package
    assert home.is_dir() or shutil.which("apt-get"), f"apt-get is missing: it fetches Debian's package `{package}`"
    with staging.locked(home.parent) as folder:
        if not home.is_dir():
            for command in (["apt-get", "update"], ["apt-get", "download", package]):
                subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT_S)
            (archive,) = folder.glob("*.deb")
            unpack: list[str | Path] = ["dpkg-deb", "--extract", archive, folder / "files"]
            subprocess.run(unpack, check=True, capture_output=True, timeout=_TIMEOUT_S)
            (folder / "files").rename(home)
    return home
