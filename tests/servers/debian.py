"""Programs of Debian's packages: as root they are installed when they are missing, else the lane fails by name."""

import os
import shutil
import subprocess
from functools import cache

_TIMEOUT_S = 300


@cache
def program(name: str, *, package: str) -> str:
    """Its path."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update"], check=True, capture_output=True, timeout=_TIMEOUT_S)
        install = ["apt-get", "install", "--yes", "--no-install-recommends", package]
        subprocess.run(install, check=True, capture_output=True, timeout=_TIMEOUT_S)
        found = shutil.which(name, path="/usr/sbin:/usr/bin")
    assert found is not None, f"{name} is missing: install Debian's package `{package}`"
    return found
