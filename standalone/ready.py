"""The ready file: addresses and credentials of a development server, for other programs."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from standalone.errors import EmbeddedError
from standalone.private_files import write_private


@dataclass(frozen=True)
class AdminCredentials:
    """A client with all privileges."""

    client_id: str
    client_secret: str


@dataclass(frozen=True)
class EngineCredentials:
    """A client with an engine's privileges in the warehouse; `scope` is the scope to request."""

    client_id: str
    client_secret: str
    scope: str


@dataclass(frozen=True)
class PersonCredentials:
    """Somebody with all privileges, who signs in to the console."""

    username: str
    password: str


@dataclass(frozen=True)
class ReadyWarehouse:
    """A warehouse; `name` is what clients configure, `location` a URL without a trailing slash."""

    id: str
    name: str
    location: str


@dataclass(frozen=True)
class ReadyStore:
    """The S3 store of a warehouse; the key may do everything in its bucket, and engines need none."""

    endpoint: str
    region: str
    bucket: str
    access_key_id: str
    secret_access_key: str = field(repr=False)


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
    person: PersonCredentials
    project_id: str
    warehouse: ReadyWarehouse
    pid: int
    s3: ReadyStore | None = None
    """Only where the warehouse is in a bucket."""


def write_ready_file(info: ReadyInfo, path: Path) -> None:
    """Write `info` as JSON to `path`, atomically and with mode 0600, because it contains secrets."""
    try:
        content = {name: value for name, value in asdict(info).items() if value is not None}
        write_private(path, json.dumps(content, indent=2) + "\n")
    except OSError as error:
        raise EmbeddedError(f"The ready file {path} cannot be written: {error.strerror}.") from error


def read_ready_file(path: Path) -> ReadyInfo:
    """The content of a ready file that `write_ready_file` wrote."""
    content = json.loads(path.read_text(encoding="utf-8"))
    parts = {
        "admin": AdminCredentials,
        "engine": EngineCredentials,
        "person": PersonCredentials,
        "warehouse": ReadyWarehouse,
        "s3": ReadyStore,
    }
    return ReadyInfo(**content | {name: kind(**content[name]) for name, kind in parts.items() if name in content})


def remove_ready_file(path: Path) -> None:
    """Remove the file of an earlier server, which could be mistaken for that of this one.

    `EmbeddedError` where the new one could not be written.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise EmbeddedError(f"The ready file {path} cannot be replaced: {error.strerror}.") from error
    if not path.parent.is_dir():
        raise EmbeddedError(f"The ready file {path} cannot be written: its directory does not exist.")
