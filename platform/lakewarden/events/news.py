"""Tells the threads that serve sinks that the log has grown, so that only one thread of a process looks for it."""

import threading


class News:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._end = 0
        self._nudges = 0

    @property
    def end(self) -> int:
        """A position up to which the log is complete."""
        return self._end

    def tell(self, end: int) -> None:
        with self._changed:
            if end > self._end:
                self._end = end
                self._changed.notify_all()

    def nudge(self) -> None:
        """Ends all waits, because something else has happened."""
        with self._changed:
            self._nudges += 1
            self._changed.notify_all()

    @property
    def nudges(self) -> int:
        return self._nudges

    def wait_beyond(self, position: int, *, nudges: int, within_s: float) -> None:
        """Until the log reaches beyond a position, or there were more nudges than `nudges`."""
        with self._changed:
            self._changed.wait_for(lambda: self._end > position or self._nudges > nudges, within_s)
