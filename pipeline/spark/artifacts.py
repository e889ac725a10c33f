"""Reads versions.toml: which jars exist, and what their bytes must be. Used by the jar cache and `doctor`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

VERSIONS = Path(__file__).with_name("versions.toml")


@dataclass(frozen=True, slots=True)
class Artifact:
    """One jar by its Maven coordinates. `size` is in bytes, `sha256` in lower-case hex."""

    group: str
    module: str
    version: str
    sha256: str
    size: int

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.module}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.module}-{self.version}.jar"


@cache
def artifacts() -> dict[str, Artifact]:
    """Every artifact of versions.toml by its short name."""
    with VERSIONS.open("rb") as source:
        return {name: Artifact(**fields) for name, fields in tomllib.load(source).items()}
