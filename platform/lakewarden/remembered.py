"""Remembers what a function made of a short text. What callers make up must not fill the memory with long ones."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

Text = TypeVar("Text", str, bytes)
Result = TypeVar("Result")


def remembered(make: Callable[[Text], Result], *, entries: int, longest: int) -> Callable[[Text], Result]:
    """`make`, which is called once for each of the last `entries` texts of at most `longest` characters."""
    kept = lru_cache(maxsize=entries)(make)

    def find(text: Text) -> Result:
        return kept(text) if len(text) <= longest else make(text)

    return find
