"""What was acknowledged as `fallback` and the log does not take: set aside for people, never thrown away."""

import fcntl
import json
import logging
import os
from pathlib import Path
from typing import Any, Final

import msgspec

from ingest.services.fallback.file import FallbackFailed
from ingest.services.fallback.records import Kept
from ingest.services.log import Batch
from lakewarden import config

logger = logging.getLogger(__name__)

SUFFIX: Final = ".refused.ndjson"
_APPENDED: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def set_aside(kept: Kept, reason: str, folder: Path) -> None:
    """Add a line of JSON to the warehouse's file. Raises FallbackFailed, also when the file is full."""
    sent, name = kept.sent, f"{kept.warehouse_id}{SUFFIX}"
    told: dict[str, Any] = {
        "reason": reason,
        "warehouse": str(kept.warehouse_id),
        "caller": sent.principal,
        "source": sent.source_id,
        "sequenceNumber": sent.sequence_number if isinstance(sent, Batch) else None,
    }
    line = msgspec.json.encode({**told, "events": msgspec.Raw(sent.content)})
    try:
        _append(folder / name, line.replace(b"\n", b" ") + b"\n")  # content may have line breaks between its members
    except OSError as error:
        raise FallbackFailed(f"{name} cannot be written: {error.strerror}") from error
    shown = json.dumps(told)
    logger.error("A batch that was acknowledged as `fallback` cannot be appended, and is in %s: %s", name, shown)


def _append(path: Path, line: bytes) -> None:
    """All of it or nothing, although several processes may write. Raises FallbackFailed, OSError."""
    most = config.current().ingest.fallback_refused_bytes
    descriptor = os.open(path, _APPENDED, 0o600)  # rows are nobody else's to read
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        if size + len(line) > most:
            raise FallbackFailed(f"{path.name} has {size} bytes, at most {most} may be: read it, and move it away")
        try:
            written = 0
            while written < len(line):
                written += os.write(descriptor, line[written:])
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)
