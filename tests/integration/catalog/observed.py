"""What tests look at beside the answers: recorded changes, and files."""

import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

Recorded = Callable[[], list[str]]


def local(location: str) -> Path:
    """The path of a `file://` location."""
    assert location.startswith("file:///"), location
    return Path(urlsplit(location).path)


def eventually(holds: Callable[[], bool]) -> None:
    """Files are removed after the answer."""
    deadline = threading.Event()
    for _ in range(200):
        if holds():
            return
        deadline.wait(0.02)
    assert holds()
