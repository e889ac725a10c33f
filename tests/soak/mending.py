"""What every fault gives back: how it is mended."""

from collections.abc import Callable

Mend = Callable[[], None]


class Unmended(Exception):
    """Something did not end, answer or come back as it should."""
