"""Files with secrets: written atomically, and readable only by their owner."""

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replace `path` by a file of mode 0600 that holds `text`; a reader sees the old file or the new one.

    `OSError` when the folder cannot be written; the old file is untouched then.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as target:
            os.fchmod(descriptor, 0o600)
            target.write(text)
            target.flush()
            os.fsync(descriptor)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
