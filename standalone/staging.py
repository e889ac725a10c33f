"""Outside programs are put into the cache by one process at a time, and whole or not at all."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """Holds the lock of `folder` (others would only share the cores) and gives an empty folder in it.

    What was put into that one is renamed into its place by the caller: the rest is removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in folder.glob(".staging-*"):  # of a process that was killed
            shutil.rmtree(leftover)
        with tempfile.TemporaryDirectory(prefix=".staging-", dir=folder) as staging:
            yield Path(staging)
