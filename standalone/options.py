"""What `lakewarden dev` is asked for, checked before anything is started."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from standalone.errors import EmbeddedError
from standalone.ready import remove_ready_file
from standalone.web_server import require_free

WAREHOUSE_KINDS = ("file",)


@dataclass(frozen=True)
class DevOptions:
    """Without `port`: the last run's, or a free one. Without `ready_file`: `ready.json` in `data_dir`."""

    data_dir: Path
    port: int | None = None
    ready_file: Path | None = None
    warehouse: str = "file"
    progress: TextIO = field(default_factory=lambda: sys.stderr)

    def check(self) -> None:
        """`EmbeddedError` for what can be seen to fail. An earlier run's ready file is removed."""
        if self.warehouse not in WAREHOUSE_KINDS:
            raise EmbeddedError(
                f"--warehouse {self.warehouse} is not available in this version: use {' or '.join(WAREHOUSE_KINDS)}."
            )
        if self.port is not None:
            require_free(self.port)
        remove_ready_file(self.ready_path)

    @property
    def ready_path(self) -> Path:
        return (self.ready_file or self.data_dir / "ready.json").absolute()
