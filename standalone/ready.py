"""What outside programs need to use a development server, and the file that tells them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from standalone.errors import EmbeddedError
from standalone.private_files import write_private


@dataclass(frozen=True)
class AdminCredentials:
    """A client that holds every right."""

    client_id: str
    client_secret: str


@dataclass(frozen=True)
class EngineCredentials:
    """A client that may do in the warehouse what an engine does; `scope` is what its tokens ask for."""

    client_id: str
    client_secret: str
    scope: str


@dataclass(frozen=True)
class ReadyWarehouse:
    """A warehouse; `name` is what clients configure, `location` a URL without a trailing slash."""

    id: str
    name: str
    location: str


@dataclass(frozen=True)
class ReadyInfo:
    """Addresses and credentials of a running development server; `pid` is the process to send TERM to."""

    catalog_uri: str
    management_uri: str
    console_uri: str
    token_endpoint: str
    issuer: str
    admin: AdminCredentials
    engine: EngineCredentials
    project_id: str
    warehouse: ReadyWarehouse
    pid: int


def write_ready_file(info: ReadyInfo, path: Path) -> None:
    """Write `info` as JSON to `path`: whole or not at all, mode 0600 because it holds secrets."""
    try:
        write_private(path, json.dumps(asdict(info), indent=2) + "\n")
    except OSError as error:
        raise EmbeddedError(f"The ready file {path} cannot be written: {error.strerror}.") from error


def read_ready_file(path: Path) -> ReadyInfo:
    """The content of a ready file that `write_ready_file` wrote."""
    content = json.loads(path.read_text(encoding="utf-8"))
    parts = {"admin": AdminCredentials, "engine": EngineCredentials, "warehouse": ReadyWarehouse}
    return ReadyInfo(**content | {name: kind(**content[name]) for name, kind in parts.items()})


def remove_ready_file(path: Path) -> None:
    """Remove an earlier server's file, which could be mistaken for this one's.

    `EmbeddedError` where the new one could not be written.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise EmbeddedError(f"The ready file {path} cannot be replaced: {error.strerror}.") from error
    if not path.parent.is_dir():
        raise EmbeddedError(f"The ready file {path} cannot be written: its directory does not exist.")
