"""Takes a body that arrived with its headers: it need not be waited for, nor timed."""

from collections.abc import Callable
from typing import Final

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

ARRIVED: Final = "lakewarden.arrived"
"""Where the scope of a request keeps the function that returns its body, or None if it is not complete yet."""


def arrived(cycle: RequestResponseCycle) -> Callable[[], bytes | None]:
    """For one request; `cycle` is uvicorn's state of it."""

    def take() -> bytes | None:
        if cycle.more_body or cycle.disconnected:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        cycle.flow.resume_reading()
        return body

    return take
