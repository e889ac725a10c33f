"""Places of those who wait for events, in a stream or a long request: limited for each caller and for the server."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from lakewarden import config
from lakewarden.errors import TooManyRequests, Unavailable
from lakewarden.fair_shares import Shares, of_server

_RETRY_S: Final = 5


@cache
def _places() -> Shares:
    now = config.current()
    return of_server("readers", now.events.readers, percent=now.server.caller_share_percent)


def taken() -> int:
    """By how many readers, in all processes of the server."""
    return _places().taken


@contextmanager
def place(caller: str) -> Iterator[None]:
    """Raises TooManyRequests for a caller who has as many as one may have, Unavailable if too few are free."""
    places, most = _places(), config.current().events.readers_of_one_caller
    if not places.take(caller):
        raise Unavailable(
            f"Too many wait for events: {places.taken}, and {places.held_by(caller)} of them are yours. Read pages "
            "without `wait`, or try again later",
            retry_after_s=_RETRY_S,
        )
    try:
        if places.held_by(caller) > most:
            raise TooManyRequests(
                f"You have {most} streams and requests that wait for events, which is as many as one caller may have "
                "(events.readers_of_one_caller)",
                retry_after_s=_RETRY_S,
            )
        yield
    finally:
        places.give_back(caller)
