"""The issuer's state directory: small private JSON files, replaced atomically; for seed.py and the stores."""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakewarden.authn.dev_issuer.refusal import StartRefused

JsonObject = dict[str, Any]


class StateDir:
    """A directory of mode 0700 whose files have mode 0600.

    Raises:
        StartRefused: the directory cannot be created or a file in it is damaged.

    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
        except OSError as error:
            raise StartRefused(
                f"The state directory {path} cannot be used ({error.strerror}): choose one that is yours."
            ) from error

    def read(self, name: str) -> JsonObject | None:
        """Return the JSON object in the file `name`, None when there is no such file."""
        file = self.path / name
        try:
            content = json.loads(file.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise self._damaged(file) from error
        if not isinstance(content, dict):
            raise self._damaged(file)
        return content

    def write(self, name: str, content: JsonObject) -> None:
        """Replace the file `name`; after a crash it holds the old content or the new one."""
        handle, temporary = tempfile.mkstemp(dir=self.path, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self.path / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory's lock, so that two processes do not both create what is missing."""
        with (self.path / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _damaged(self, file: Path) -> StartRefused:
        return StartRefused(f"{file} is damaged. Delete it: the next start creates a new one, with new secrets.")
