"""The job that the running code works for, and whether its worker still holds it: only then an attempt may begin."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from procrastinate.job_context import JobContext
from procrastinate.worker import Worker

from lakewarden.prepared_statements import fetch


@dataclass(frozen=True, slots=True)
class Hold:
    """Identifies one assignment of a job to a worker: `attempts` grows each time the job is given back."""

    job_id: int
    attempts: int

    def is_valid(self) -> bool:
        return bool(fetch(_VALID, [self.job_id, self.attempts]))


def current() -> Hold | None:
    """The job of the running code; None outside of a worker."""
    return _CURRENT.get()


async def announced(call_next: Callable[[], Awaitable[Any]], context: JobContext, _worker: Worker) -> Any:  # noqa: ANN401 the job's own result
    """The worker's middleware, which sets `current` for everything that runs for the job."""
    job = context.job
    _CURRENT.set(None if job.id is None else Hold(job.id, job.attempts))
    return await call_next()


_CURRENT: ContextVar[Hold | None] = ContextVar("hold", default=None)
_VALID = "select 1 from procrastinate_jobs where id = %s and status = 'doing' and attempts = %s"
