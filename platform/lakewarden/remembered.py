"""A cache for functions of one text. Long texts are not cached, so callers cannot fill the memory with them."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

Text = TypeVar("Text", str, bytes)
Result = TypeVar("Result")


def remembered(make: Callable[[Text], Result], *, entries: int, longest: int) -> Callable[[Text], Result]:
    """Wrap `make` in a cache of `entries` results, for texts of at most `longest` characters."""
    kept = lru_cache(maxsize=entries)(make)

    def find(text: Text) -> Result:
        return kept(text) if len(text) <= longest else make(text)

    return find
