"""The jars that a `pom.xml` lists, fetched by Maven into the cache once."""

import hashlib
import subprocess
from pathlib import Path

from lakewarden.cache_folder import cache_folder
from standalone import staging


def jars(pom: Path, *, name: str, error: type[Exception]) -> Path:
    """The folder of the jars, in the cache under `name`. Raises `error` if they cannot be fetched."""
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    home = cache_folder() / name / digest
    if home.is_dir():
        return home
    with staging.locked(home.parent) as folder:
        if not home.is_dir():  # another process may have fetched them in the meantime
            _fetch(pom, folder, error)
            (folder / "jars").rename(home)
    return home


def _fetch(pom: Path, folder: Path, error: type[Exception]) -> None:
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={folder / 'jars'}", f"-Dmaven.repo.local={folder / 'm2'}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    except FileNotFoundError as missing:
        raise error(f"Maven (mvn) is not installed: it fetches the jars of {pom} from Maven Central") from missing
    if done.returncode != 0:
        raise error(f"The jars of {pom} could not be fetched:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
