"""Turns PostgreSQL's log of a failed start into a sentence that says what to do."""

import shutil
from pathlib import Path

_FULL_DISK = "the disk that holds {place} is full: free some space, or give another directory with --data-dir"
_CAUSES = (
    ("No space left on device", _FULL_DISK),
    ("Check free disk space", _FULL_DISK),
    (
        "Disk quota exceeded",
        "the disk quota for {place} is used up: free some space, or give another directory with --data-dir",
    ),
    (
        "could not map anonymous shared memory",
        "the system has too little memory for it: end other programs and start again",
    ),
    (
        "pre-existing shared memory block",
        "parts of an earlier PostgreSQL on {place} still run: wait a few seconds and start again",
    ),
    (
        "database files are incompatible with server",
        "the data in {place} are another version's: start the version that made them, or move them away",
    ),
    (
        "Read-only file system",
        "the file system of {place} is read-only: give another directory with --data-dir",
    ),
    (
        "Permission denied",
        "it may not use {place}: start as the owner of it, or give another directory with --data-dir",
    ),
)
_ALMOST_FULL_BYTES = 1024 * 1024
_PORT_IN_USE = "Address already in use"


def port_was_taken(text: str) -> bool:
    """Whether the server failed because another program has taken its port."""
    return _PORT_IN_USE in text


def explain(what: str, text: str, *, place: Path, log: Path) -> str:
    """One sentence: what happened, its cause as found in `text` (else the last error line there), the log."""
    causes = [cause for sign, cause in _CAUSES if sign in text]
    if not causes and shutil.disk_usage(place).free < _ALMOST_FULL_BYTES:
        # the log is on the same disk, so the line about it may be missing
        causes = [_FULL_DISK]
    if causes:
        return f"{what}: {causes[0].format(place=place)} (log: {log})."
    lines = [line for line in text.splitlines() if line.strip()] or ["it wrote nothing"]
    errors = [line for line in lines if "FATAL" in line or "PANIC" in line or "error:" in line] or lines
    return f"{what}: {errors[-1].strip()} (log: {log})."
