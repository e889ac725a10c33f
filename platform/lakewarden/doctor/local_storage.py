"""Checks the directories for warehouses of type `local`: existing, writable, with free space."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lakewarden.config import Config
from lakewarden.doctor.findings import Finding, fail, ok, warn

LITTLE_ROOM = 1024**3  # bytes: a compaction needs about this much
NO_ROOM = 64 * 1024**2  # bytes: enough for metadata files, but hardly for data


def examine(settings: Config) -> Iterator[Finding]:
    roots = settings.storage.local_roots
    if not roots:
        yield warn(
            "storage",
            "no directory is allowed for warehouses, so none of type local can be created",
            fix="set LAKEWARDEN__STORAGE__LOCAL_ROOTS to a directory that the server and all engines share",
        )
    for root in roots:
        yield examine_root(root)


def examine_root(root: Path) -> Finding:
    """Whether warehouses can be created and written below `root`."""
    name = f"storage {root}"
    try:
        if not root.is_dir():
            return fail(name, "is not a directory", fix=f"create it for the server's user: mkdir -p {root}")
        with tempfile.TemporaryFile(dir=root) as probe:
            probe.write(b"probe")
        free = shutil.disk_usage(root).free
    except OSError as error:
        return fail(name, f"cannot be written: {error.strerror}", fix="give the server's user the right to write there")
    return _room(name, free)


def _room(name: str, free: int) -> Finding:
    said = f"is writable, {free / 1024**3:.1f} GiB are free"
    fix = "free space on this disk, or move the warehouses to a larger one"
    if free < NO_ROOM:
        return fail(name, said, fix=fix)
    return warn(name, said, fix=fix) if free < LITTLE_ROOM else ok(name, said)
