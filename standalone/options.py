"""The options of `lakewarden dev`, checked before anything is started."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from standalone.errors import EmbeddedError
from standalone.ready import remove_ready_file
from standalone.s3.options import S3Options
from standalone.web_server import require_free

WAREHOUSE_KINDS = ("file", "s3")


@dataclass(frozen=True)
class DevOptions:
    """Defaults: `port` is that of the last run, or a free one; `ready_file` is `ready.json` in `data_dir`."""

    data_dir: Path
    port: int | None = None
    ready_file: Path | None = None
    warehouse: str = "file"
    pipeline: bool = False
    s3: S3Options = field(default_factory=S3Options)
    progress: TextIO = field(default_factory=lambda: sys.stderr)

    def check(self) -> None:
        """Raises EmbeddedError for options that cannot work. Removes the ready file of an earlier run."""
        if self.warehouse not in WAREHOUSE_KINDS:
            raise EmbeddedError(f"--warehouse {self.warehouse} is not known: use {' or '.join(WAREHOUSE_KINDS)}.")
        if self.warehouse == "s3":
            self.s3.check()
        elif self.s3 != S3Options():
            raise EmbeddedError("--s3-endpoint, --s3-bucket and --s3-region belong to --warehouse s3.")
        if self.port is not None:
            require_free(self.port)
        remove_ready_file(self.ready_path)

    @property
    def ready_path(self) -> Path:
        return (self.ready_file or self.data_dir / "ready.json").absolute()
