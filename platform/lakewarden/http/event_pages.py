"""A page of events, as the view that reads it hands it to `event_streams`, which waits for the next one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PAGE: Final = "lakewarden.event-page"
"""The key in the scope, and in `HttpRequest.META`, of the page that is asked for."""


@dataclass(slots=True)
class EventPage:
    """`after` is where to read on; None: where the request itself says. The view fills the rest, unless it refuses.

    `project` is None for events of all projects; `position` is where the next page begins; `more`: there may be more
    at once.
    """

    is_stream: bool
    after: int | None = None
    is_filled: bool = False
    project: str | None = None
    events: Sequence[tuple[int, bytes]] = ()
    position: int = 0
    more: bool = False

    @property
    def is_first(self) -> bool:
        return self.after is None

    def fill(self, events: Sequence[tuple[int, bytes]], *, project: str | None, position: int, more: bool) -> None:
        """`events` are positions with what a sink would receive."""
        self.events, self.project, self.position, self.more, self.is_filled = events, project, position, more, True

    def next(self, position: int) -> "EventPage":
        return EventPage(self.is_stream, after=position)
