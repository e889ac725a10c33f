"""Parses values of properties, which are strings of any length and content."""

import re

_WHOLE = re.compile(r"-?[0-9]{1,10}")


def whole_number(text: str) -> int | None:
    """Parse a number of at most ten digits; None if the text is not one."""
    return int(text) if _WHOLE.fullmatch(text) else None


def is_true(text: str | None) -> bool:
    """Whether a boolean property is true: only `true`, ignoring case, is."""
    return text is not None and text.lower() == "true"
