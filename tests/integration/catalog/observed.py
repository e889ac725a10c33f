"""What tests look at beside the answers: recorded changes, and files."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

Recorded = Callable[[], list[str]]


def local(location: str) -> Path:
    """The path of a `file://` location."""
    assert location.startswith("file:///"), location
    return Path(urlsplit(location).path)
