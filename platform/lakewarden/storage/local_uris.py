"""`file:` locations, and the paths that they stand for."""

from urllib.parse import unquote

from lakewarden.remembered import remembered
from lakewarden.storage.interface import StorageError

SCHEME = "file://"


def _local_path(location: str) -> str:
    """The path of `file:///p`, `file:/p`; clients write both. StorageError for any other URI."""
    path = location.removeprefix("file:").removeprefix("//")
    if not location.startswith("file:") or not path.startswith("/"):
        raise StorageError(f"{location!r} is not a file:// location")
    # locations are not URL-decoded by engines: a '%' is part of the name
    if ".." in path.split("/") or "\x00" in path or ".." in unquote(path).split("/"):
        raise StorageError(f"{location!r} contains '..' or U+0000")
    return path


local_path = remembered(_local_path, entries=10_000, longest=1000)
