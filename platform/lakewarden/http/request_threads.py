"""The threads in which Django answers requests; what the event loop must ask as Django does takes its turn there."""

from collections.abc import Callable
from typing import Final, TypeVar

from lakewarden import config
from lakewarden.database import read
from lakewarden.hot.fair_threads import FairThreads
from lakewarden.http.running_queries import RUNNING

T = TypeVar("T")

_settings = config.current().server

THREADS: Final = FairThreads(
    "request",
    threads=_settings.threads,
    queue=_settings.queue,
    percent=_settings.caller_share_percent,
    patience_s=_settings.queue_timeout_s,
    prepare=RUNNING.register,
)


async def ask(caller: str, question: Callable[[], T]) -> T:
    """What `question` returns, which reads the database in a thread and changes nothing. Raises Unavailable."""
    return await THREADS.run(caller, read, question)
