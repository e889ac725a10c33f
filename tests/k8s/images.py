"""The images of the tests, built without a registry by docker/build.sh; kept in the cache, layer by layer."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lakewarden import __version__
from lakewarden.cache_folder import cache_folder
from tests.servers.helm import ROOT

POSTGRES: Final = "localhost/lw-postgres:1"
LAKEWARDEN: Final = f"localhost/lakewarden:{__version__}"
_BUILD_S: Final = 1800.0


class ImageFailed(AssertionError):
    """It was not built; the message holds the end of what was said."""


Command = Sequence[str | Path]


def archives(*names: str) -> list[Path]:
    """Of images of the product (`lakewarden`), and of a PostgreSQL that stands for the official image."""
    folder, names = cache_folder() / "images", names or ("lakewarden",)
    _run([ROOT / "docker" / "build.sh", folder, *names], ROOT)
    store: Command = ["--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "overlay"]
    archive = folder / "postgres.tar"
    here = Path(__file__).with_name("postgres")
    _run(["buildah", *store, "bud", "--quiet", "--isolation", "chroot", "--layers", "-t", POSTGRES, here], ROOT)
    archive.unlink(missing_ok=True)
    _run(["buildah", *store, "push", "--quiet", POSTGRES, f"docker-archive:{archive}:{POSTGRES}"], ROOT)
    return [*(folder / f"{name}.tar" for name in names), archive]


def _run(command: Command, directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=_BUILD_S, check=False)
    if done.returncode != 0:
        raise ImageFailed(f"{command[0]}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
