"""The profile of a warehouse in a directory."""

import os
from pathlib import Path
from typing import Annotated, ClassVar, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, Field

from lakewarden.config import StorageConfig
from lakewarden.errors import InvalidArgument
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import Storage
from lakewarden.storage.local import LocalStorage
from lakewarden.storage.local_uris import SCHEME, local_path
from lakewarden.storage.profile import StorageProfile

MAX_PATH_BYTES = 900  # the locations of tables are longer by two ids, and must be within 1024
MAX_NAME_BYTES = 255  # of a folder


def _normal_path(path: str) -> str:
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


class LocalProfile(StorageProfile):
    """A directory that the server and every engine reach under the same path."""

    LONGEST_NAME: ClassVar = MAX_NAME_BYTES
    PLACE_FIELDS: ClassVar = ("base-path",)
    SEES_MISSING_FILES: ClassVar = True
    CLIENTS_NEED_CONFIG: ClassVar = False

    type: Literal["local"]
    base_path: Annotated[str, AfterValidator(_normal_path)] = Field(alias="base-path")

    @property
    def location(self) -> str:
        return SCHEME + self.base_path.rstrip("/")

    @property
    def real_location(self) -> str:
        """With links followed."""
        return SCHEME + os.path.realpath(self.base_path).rstrip("/")

    def normal(self, location: str) -> str:
        return SCHEME + local_path(location).rstrip("/")

    def ensure_allowed(self, settings: StorageConfig) -> None:
        """The directory is below one of the operator's roots."""
        # a link below a root may lead out of it
        meant = Path(os.path.realpath(self.base_path))
        if not any(meant.is_relative_to(root.resolve()) for root in settings.local_roots):
            allowed = ", ".join(str(root) for root in settings.local_roots) or "none: the setting is empty"
            raise InvalidArgument(
                f"base-path {self.base_path!r} is not below one of the server's storage.local_roots ({allowed})"
            )

    def open(self, credential: StorageCredential | None) -> Storage:  # noqa: ARG002 there is none
        return LocalStorage(self.base_path)
