"""The jars of the peers, fetched by Maven into the cache once; `pom.xml` beside this file is the list of them."""

import hashlib
import subprocess
from pathlib import Path

from benchmarks.failures import BenchmarkError
from pipeline.spark.jars import cache_folder
from tests.servers import staging

_POM = Path(__file__).parent / "pom.xml"


def provide() -> Path:
    """The folder of the jars. BenchmarkError when they cannot be had."""
    digest = hashlib.sha256(_POM.read_bytes()).hexdigest()[:16]
    home = cache_folder() / "peers" / digest
    if home.is_dir():
        return home
    with staging.locked(home.parent) as folder:
        if not home.is_dir():  # another process was not quicker
            _fetch(folder)
            (folder / "jars").rename(home)
    return home


def _fetch(folder: Path) -> None:
    command = ["mvn", "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={folder / 'jars'}", f"-Dmaven.repo.local={folder / 'm2'}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    except FileNotFoundError as error:
        raise BenchmarkError("Maven (mvn) is not installed: it fetches the peers from Maven Central") from error
    if done.returncode != 0:
        raise BenchmarkError(f"The peers could not be fetched: {done.stdout[-1000:]}{done.stderr[-1000:]}")


def one(folder: Path, start: str) -> Path:
    """The jar whose name starts so."""
    return next(each for each in sorted(folder.iterdir()) if each.name.startswith(start))
