"""Pages of lists by key: the opaque page token contains the key of the last item."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakewarden import config
from lakewarden.errors import BadRequest
from lakewarden.memory import hold

T = TypeVar("T")

MAX_PAGE_SIZE = 1000
_PER_ENTRY = 1000  # bytes of memory for an entry while it is fetched and rendered


@dataclass(frozen=True, slots=True)
class Page:
    """`after` is the key of the last item of the page before, or None; `size` None requests all items."""

    after: str | None
    size: int | None

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> "Page":
        """Parse `pageToken` and `pageSize`; without both, all items are requested.

        Raises BadRequest if one is invalid.
        """
        token, size = query.get("pageToken"), query.get("pageSize")
        if token is None and size is None:
            return cls(None, None)
        return cls(_key(token) if token else None, _size(size))

    @property
    def limit(self) -> int:
        """How many items to fetch: one more than are shown, to find out whether there are more."""
        return 1 + (config.current().catalog.max_list_entries if self.size is None else self.size)

    def cut(self, found: Sequence[tuple[T, str]]) -> tuple[list[T], str | None]:
        """The items to show of at most `limit` (item, key) pairs, and the key of the next page (None: there is none).

        Raises BadRequest if all items were requested and there are too many.
        """
        if self.size is None:
            if len(found) >= self.limit:
                raise BadRequest(
                    f"There are more than {self.limit - 1} entries (catalog.max_list_entries): "
                    "ask for pages, with pageSize and pageToken"
                )
            hold("list", _PER_ENTRY * len(found))
        shown = found if self.size is None else found[: self.size]
        return [item for item, _ in shown], shown[-1][1] if len(shown) < len(found) else None


def next_token(key: str) -> str:
    """The token of the page that starts after `key`."""
    return base64.urlsafe_b64encode(b"1" + key.encode()).decode().rstrip("=")


def _key(token: str) -> str:
    try:
        plain = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        if plain[:1] != b"1" or b"\x00" in plain:
            raise BadRequest(f"Invalid pageToken {token[:80]!r}: it was not issued by this server")
        return plain[1:].decode()
    except (binascii.Error, ValueError):
        raise BadRequest(f"Invalid pageToken {token[:80]!r}: it was not issued by this server") from None


def _size(value: str | None) -> int:
    if value is None:
        return MAX_PAGE_SIZE
    if not (value.isascii() and value.isdigit() and value.strip("0")):
        raise BadRequest(f"Invalid pageSize {value[:80]!r}: a number from 1 is expected")
    return MAX_PAGE_SIZE if len(value) > 9 else min(int(value), MAX_PAGE_SIZE)  # noqa: PLR2004 digits
