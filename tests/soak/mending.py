"""The result of every fault: how it is repaired."""

from collections.abc import Callable

Mend = Callable[[], None]


class Unmended(Exception):
    """Something did not end, answer or come back as it should."""
