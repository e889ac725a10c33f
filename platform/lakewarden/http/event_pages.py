"""A page of events, as the view that reads it hands it to `event_streams`, which waits for the next one.

Pages of the console are followed in the same way: there an event is a part of the page that has changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

PAGE: Final = "lakewarden.event-page"
"""The key in the scope, and in `HttpRequest.META`, of the page that is asked for."""


@dataclass(slots=True)
class EventPage:
    """`after` is where to read on; None: where the request itself says. The view fills the rest, unless it refuses.

    `project` is None for events of all projects; `position` is where the next page begins; `more`: there may be more
    at once. `reader` is whose place a stream takes; empty: the caller's. With `every_s`, the next page is asked for
    after that time instead of when there is news; `shown` is a digest of what it showed.
    """

    is_stream: bool
    after: int | None = None
    is_filled: bool = False
    project: str | None = None
    events: Sequence[tuple[int, bytes]] = ()
    position: int = 0
    more: bool = False
    reader: str = ""
    every_s: float | None = None
    shown: bytes = b""

    @property
    def is_first(self) -> bool:
        return self.after is None

    def fill(self, events: Sequence[tuple[int, bytes]], *, project: str | None, position: int, more: bool) -> None:
        """`events` are positions with what a sink would receive."""
        self.events, self.project, self.position, self.more, self.is_filled = events, project, position, more, True

    def show(self, content: bytes, *, reader: str, every_s: float) -> None:
        """The event is the content, if it is not what was shown before."""
        # a line break of any kind would end the field, and begin one that the content chooses
        event = b"\ndata: ".join(content.splitlines())
        digest = sha256(event).digest()
        self.fill([] if digest == self.shown else [(0, event)], project=None, position=0, more=False)
        self.reader, self.every_s, self.shown = reader, every_s, digest

    def next(self, position: int) -> "EventPage":
        return EventPage(self.is_stream, after=position, shown=self.shown)
