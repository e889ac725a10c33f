import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A directory that every user may enter; pytest's own are closed, so root's PostgreSQL could not use them."""
    directory = Path(tempfile.mkdtemp(prefix="lw-embedded-"))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory)
