"""TERM, HUP and Ctrl-C as one `KeyboardInterrupt` in the main thread; for commands with a process tree."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def interrupting() -> Iterator[None]:
    """In the body of the `with`, the first such signal raises KeyboardInterrupt; later ones are ignored.

    Does nothing outside the main thread, where Python has no signal handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    fired = threading.Event()

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if not fired.is_set():
            fired.set()
            raise KeyboardInterrupt(signal.Signals(number).name)

    # `nohup` ignores SIGHUP, which must stay so
    kept = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else set()
    before = {number: signal.signal(number, interrupt) for number in _STOPPING if number not in kept}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
