"""The S3 servers that `lakewarden dev` and tests start on 127.0.0.1: their keys, commands and environments."""

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from standalone.go_programs import GoProgram


@dataclass(frozen=True)
class Keys:
    """An access key; a session token belongs to keys that STS issued."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    @classmethod
    def new(cls) -> "Keys":
        return cls(f"LW{secrets.token_hex(8).upper()}", secrets.token_hex(20))


@dataclass(frozen=True)
class Launch:
    """How a server is started: the words of its command, and its variables."""

    command: Sequence[str | Path]
    variables: Mapping[str, str] = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of this process without those that would change the server, and its own."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MINIO_", "AWS_"))}
        return kept | dict(self.variables)


class Launching(Protocol):
    """`root` is the key that may do everything, `directory` where the server keeps its files."""

    def __call__(self, executable: Path, *, address: str, directory: Path, root: Keys, region: str) -> Launch: ...


@dataclass(frozen=True)
class S3Program:
    """`issues_keys`: whether it has an STS whose policies it enforces. `health` answers 200 when it is up."""

    go: GoProgram
    issues_keys: bool
    health: str
    launch: Launching

    @property
    def name(self) -> str:
        return self.go.name


def _minio(executable: Path, *, address: str, directory: Path, root: Keys, region: str) -> Launch:
    variables = {
        "MINIO_ROOT_USER": root.access_key_id,
        "MINIO_ROOT_PASSWORD": root.secret_access_key,
        "MINIO_REGION": region,
        # each would reach or show more than is needed
        "MINIO_UPDATE": "off",
        "MINIO_BROWSER": "off",
    }
    command = (executable, "server", "--quiet", "--address", address, directory / "data")
    return Launch(command, variables)


def _versitygw(executable: Path, *, address: str, directory: Path, root: Keys, region: str) -> Launch:
    # it changes its directory: paths must be absolute
    data, versions = directory / "data", directory / "versions"
    for folder in (data, versions):
        folder.mkdir(parents=True, exist_ok=True)
    options = ("--port", address, "--region", region, "--health", "/health", "--quiet")
    variables = {"ROOT_ACCESS_KEY": root.access_key_id, "ROOT_SECRET_KEY": root.secret_access_key}
    return Launch((executable, *options, "posix", "--versioning-dir", versions, data), variables)


MINIO: Final = S3Program(
    GoProgram("minio", "minio", "github.com/minio/minio"),
    issues_keys=True,
    health="/minio/health/cluster",  # "ready" answers 200 before buckets can be made
    launch=_minio,
)
VERSITYGW: Final = S3Program(
    GoProgram("versitygw", "versitygw", "github.com/versity/versitygw/cmd/versitygw"),
    issues_keys=False,
    health="/health",
    launch=_versitygw,
)
