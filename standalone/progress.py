"""Prints the steps of a command on stderr, with their seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Progress:
    """Lines like `  PostgreSQL ... 1.2 s` on `stream`; the first half is there while the step runs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, text: str) -> None:
        self._write(f"{text}\n")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        began = time.monotonic()
        self._write(f"  {title} ... ")
        try:
            yield
        except KeyboardInterrupt:
            self._write("interrupted\n")
            raise
        except BaseException:
            self._write("failed\n")
            raise
        self._write(f"{time.monotonic() - began:.1f} s\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
