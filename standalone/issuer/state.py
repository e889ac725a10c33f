"""The issuer's state directory: small private JSON files, replaced atomically; for seed.py and the stores."""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from standalone.issuer.refusal import StartRefused

JsonObject = dict[str, Any]


class StateDir:
    """A directory of mode 0700 whose files have mode 0600.

    Raises:
        StartRefused: the directory cannot be used (rights, space), or a file in it is damaged.

    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
        except OSError as error:
            raise self._unusable(error) from error

    def read(self, name: str) -> JsonObject | None:
        """Return the JSON object in the file `name`; None if it does not exist."""
        file = self.path / name
        try:
            content = json.loads(file.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from error
        except ValueError as error:
            raise self._damaged(file) from error
        if not isinstance(content, dict):
            raise self._damaged(file)
        return content

    def write(self, name: str, content: JsonObject) -> None:
        """Replace the file `name` atomically: after a crash it has either the old or the new content."""
        text = json.dumps(content, indent=2)
        temporary: str | None = None
        try:
            handle, temporary = tempfile.mkstemp(dir=self.path, prefix=f".{name}.")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self.path / name)
        except OSError as error:
            if temporary is not None:
                Path(temporary).unlink(missing_ok=True)
            raise self._unusable(error) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory's lock, so two processes do not both create missing files."""
        try:
            lock = (self.path / ".lock").open("w")
        except OSError as error:
            raise self._unusable(error) from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _unusable(self, error: OSError) -> StartRefused:
        return StartRefused(
            f"The development issuer's state directory {self.path} cannot be used ({error.strerror}): choose one"
            " that you may write to, on a disk with free space."
        )

    def _damaged(self, file: Path) -> StartRefused:
        return StartRefused(f"{file} is damaged. Delete it: the next start creates a new one, with new secrets.")
