"""Prints the demo's output: steps with their seconds, tables, a bar chart, text. Only this module prints."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

BAR_WIDTH = 40


class Report:
    """Writes to `stream`; `began` is when the first line was due, for "after n s"."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._in_step = False
        self._said_in_step = False
        self.began = time.monotonic()

    def heading(self, text: str) -> None:
        self._write(f"\n{text}\n{'─' * len(text)}\n")

    def say(self, text: str = "") -> None:
        """One or more whole lines; in the middle of a step they stand below its name."""
        if self._in_step:
            self._said_in_step = True
            self._write(f"\n      {text}")
        else:
            self._write(f"{text}\n")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """`  title ... 1.2 s`: the first half is there while the step runs."""
        began = time.monotonic()
        self._in_step, self._said_in_step = True, False
        self._write(f"  {title} ... ")
        end = "failed"
        try:
            yield
            end = f"{time.monotonic() - began:.1f} s"
        except (KeyboardInterrupt, SystemExit):
            end = "interrupted"
            raise
        finally:
            self._write(f"\n      ... {end}\n" if self._said_in_step else f"{end}\n")
            self._in_step = False

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Columns as wide as they need; numbers to the right, with thousands marked."""
        shown = [[show(value) for value in row] for row in rows]
        widths = [
            max(len(title), *(len(row[i]) for row in shown), 0) if shown else len(title)
            for i, title in enumerate(titles)
        ]
        numeric = [
            bool(rows) and all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(titles))
        ]
        for line in [list(titles), ["─" * width for width in widths], *shown]:
            cells = (
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, numeric, strict=True)
            )
            self._write(f"    {'  '.join(cells).rstrip()}\n")

    def bars(self, pairs: Sequence[tuple[str, float]], *, unit: str) -> None:
        """One bar a label; values below zero point to the left of the line, so that both signs can be compared."""
        most = max((abs(value) for _, value in pairs), default=0.0) or 1.0
        labels = max((len(label) for label, _ in pairs), default=0)
        lengths = [(round(abs(value) / most * BAR_WIDTH), value) for _, value in pairs]
        left = max((length for length, value in lengths if value < 0), default=0)
        for (label, _), (length, value) in zip(pairs, lengths, strict=True):
            bar = "█" * length
            sides = f"{bar.rjust(left)}│" if value < 0 else f"{' ' * left}│{bar}"
            self._write(f"    {label.ljust(labels)} {sides} {value:+.1f} {unit}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def show(value: object) -> str:
    """A value as a cell: numbers with thousands marked, nothing for null."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
        case _:
            return str(value)
