"""Which job the running code works for, and whether its worker still holds it: an attempt begins only then."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from procrastinate.job_context import JobContext
from procrastinate.worker import Worker

from lakewarden.prepared_statements import fetch


@dataclass(frozen=True, slots=True)
class Hold:
    """Each time that a job is given back its `attempts` grow: that is what tells one holder from the next."""

    job_id: int
    attempts: int

    def is_valid(self) -> bool:
        return bool(fetch(_VALID, [self.job_id, self.attempts]))


def current() -> Hold | None:
    """None outside of a worker."""
    return _CURRENT.get()


async def announced(call_next: Callable[[], Awaitable[Any]], context: JobContext, _worker: Worker) -> Any:  # noqa: ANN401 the job's own result
    """A worker's middleware: `current` is the job's in all that runs for it."""
    job = context.job
    _CURRENT.set(None if job.id is None else Hold(job.id, job.attempts))
    return await call_next()


_CURRENT: ContextVar[Hold | None] = ContextVar("hold", default=None)
_VALID = "select 1 from procrastinate_jobs where id = %s and status = 'doing' and attempts = %s"
