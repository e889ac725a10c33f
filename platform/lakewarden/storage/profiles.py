"""Storage profiles: where a warehouse lies, as the management API writes it (a union tagged by `type`)."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lakewarden.errors import BadRequest
from lakewarden.storage.interface import StorageError

SCHEME = "file://"


def _normal(path: str) -> str:
    if not path.startswith("/") or "\x00" in path:
        raise ValueError(f"{path!r} is not an absolute path")
    if any(part == ".." for part in path.split("/")):
        raise ValueError(f"{path!r} must not hold '..'")
    return str(Path(path))


class LocalProfile(BaseModel):
    """A directory that the server and every engine reach under the same path."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["local"]
    base_path: Annotated[str, AfterValidator(_normal)] = Field(alias="base-path")

    @property
    def location(self) -> str:
        """The warehouse's base location, without a trailing slash."""
        return SCHEME + self.base_path.rstrip("/")

    def dump(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True)


StorageProfile = LocalProfile
_adapter: TypeAdapter[StorageProfile] = TypeAdapter(StorageProfile)


def parse_profile(value: object) -> StorageProfile:
    """Raises BadRequest that names the wrong field."""
    if not isinstance(value, dict) or value.get("type") != "local":
        kind = value.get("type") if isinstance(value, dict) else value
        raise BadRequest(f"Unknown storage profile type {kind!r}: this server knows 'local'")
    try:
        return _adapter.validate_python(value)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in problem["loc"])
        raise BadRequest(f"Invalid storage profile: {field}: {problem['msg']}") from None


@lru_cache(maxsize=10_000)
def local_path(location: str) -> str:
    """The path of `file:///p`, `file:/p`; clients write both. StorageError for any other URI."""
    path = location.removeprefix("file:").removeprefix("//")
    if not location.startswith("file:") or not path.startswith("/"):
        raise StorageError(f"{location!r} is not a file:// location")
    # locations are not URL-decoded by engines: a '%' is part of the name
    if ".." in path.split("/") or "\x00" in path or ".." in unquote(path).split("/"):
        raise StorageError(f"{location!r} holds '..' or U+0000")
    return path
