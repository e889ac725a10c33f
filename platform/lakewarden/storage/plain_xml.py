"""Refuses XML that costs much more than its length: stores never send such answers."""

from typing import Final

_MOST_TAGS: Final = 500_000
"""A page of 1,000 versions with all that S3 says of each has a tenth of it."""


class NotPlain(Exception):
    """The answer has declarations that expand, far too many elements, or another encoding than UTF-8."""


def ensure_plain(content: bytes) -> None:
    """Call it before a parser sees the content. Raises NotPlain."""
    # other encodings have zero bytes between letters: in them, a declaration would not be found
    if b"<!DOCTYPE" in content or b"\x00" in content or content.count(b"<") > _MOST_TAGS:
        raise NotPlain
