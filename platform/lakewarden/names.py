"""Names are stored as written but compared ignoring case: every table with names also stores their match key."""

import unicodedata

from lakewarden.errors import InvalidArgument

MAX_NAME_LENGTH = 255
MAX_DEPTH = 16
"""Levels of a namespace."""


def match_key(name: str) -> str:
    """The key for comparing names: equal for names that differ only in case or in Unicode composition."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def check_name(name: str, *, what: str) -> str:
    """Returns `name`; raises InvalidArgument if it cannot be stored in the database or used in a path."""
    if not name:
        raise InvalidArgument(f"Invalid {what} name: it is empty")
    if all(_is_invisible(character) for character in name):
        raise InvalidArgument(f"Invalid {what} name {name[:80]!r}: it is blank, and a visible character is expected")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidArgument(f"Invalid {what} name: {len(name)} characters, at most {MAX_NAME_LENGTH} are allowed")
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise InvalidArgument(f"Invalid {what} name: {name!r} contains a control character")
    if any("\ud800" <= character <= "\udfff" for character in name):
        raise InvalidArgument(f"Invalid {what} name: it contains half of a surrogate pair")
    return name


def _is_invisible(character: str) -> bool:
    """Blanks of all kinds, and characters that only say how others are shown, e.g. the zero-width space."""
    return unicodedata.category(character) in {"Zs", "Zl", "Zp", "Cf"}
