"""Storage profiles: where a warehouse lies, as the management API writes it (a union tagged by `type`)."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lakewarden.errors import BadRequest
from lakewarden.remembered import remembered
from lakewarden.storage.interface import StorageError

SCHEME = "file://"
MAX_PATH_BYTES = 900  # the locations of tables are longer by two ids, and must be within 1024
MAX_NAME_BYTES = 255  # of a folder


def _normal(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path[:80]!r} is not an absolute path")
    if any(character < " " or character == "\x7f" for character in path):
        raise ValueError(f"{path[:80]!r} contains a control character")
    if any(part == ".." for part in (*path.split("/"), *unquote(path).split("/"))):
        raise ValueError(f"{path[:80]!r} must not contain '..'")
    # two slashes at the beginning are a place of their own for Path, and the same one for the system
    normal = str(Path("/" + path.lstrip("/")))
    longest = max(len(part.encode()) for part in normal.split("/"))
    if len(normal.encode()) > MAX_PATH_BYTES or longest > MAX_NAME_BYTES:
        raise ValueError(
            f"{path[:80]!r}… is too long: {MAX_PATH_BYTES} bytes in all and {MAX_NAME_BYTES} a folder are allowed"
        )
    return normal


class LocalProfile(BaseModel):
    """A directory that the server and every engine reach under the same path."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["local"]
    base_path: Annotated[str, AfterValidator(_normal)] = Field(alias="base-path")

    @property
    def location(self) -> str:
        """The warehouse's base location, without a trailing slash."""
        return SCHEME + self.base_path.rstrip("/")

    @property
    def real_location(self) -> str:
        """Where the location leads to, links followed."""
        return SCHEME + os.path.realpath(self.base_path).rstrip("/")

    def dump(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True)


StorageProfile = LocalProfile
"""One of the known types; a further one joins the union here, and PROFILES."""

PROFILES: dict[str, type[StorageProfile]] = {"local": LocalProfile}


def parse_profile(value: object) -> StorageProfile:
    """Raises BadRequest that names the wrong field, or lists the types that are known."""
    kind = value.get("type") if isinstance(value, dict) else value
    shape = PROFILES.get(kind) if isinstance(kind, str) else None
    if kind is None:
        raise BadRequest(f"Invalid storage profile: type is missing: one of {', '.join(sorted(PROFILES))} is expected")
    if shape is None:
        known = ", ".join(repr(name) for name in sorted(PROFILES))
        raise BadRequest(f"Unknown storage profile type {str(kind)[:80]!r}: this server knows {known}")
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in problem["loc"])
        reason = problem["msg"].removeprefix("Value error, ")
        raise BadRequest(f"Invalid storage profile: {field}: {reason}") from None


def check_credential(profile: StorageProfile, credential: object) -> None:
    """Raises BadRequest when `credential` (None: not given) is not of a kind that storage of the type takes."""
    if credential is not None:
        raise BadRequest(f"storage-credential: storage of the type {profile.type!r} has none; omit it")


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
