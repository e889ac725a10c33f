"""Runs the worker of `lakewarden work`; it waits while the database is not reachable, and then goes on."""

import asyncio
import logging
import signal
import time
from typing import Final

from procrastinate.contrib.django import app
from procrastinate.contrib.django.utils import connector_params
from procrastinate.psycopg_connector import PsycopgConnector

from lakewarden import config
from lakewarden.events.relay import Relay
from lakewarden.postgres import history, limits
from lakewarden.postgres.bounded import AsyncBounded, begin_async
from lakewarden.tasks import holding
from lakewarden.tasks.held_jobs import HeldJobs

logger = logging.getLogger(__name__)

LONGEST_PAUSE_S: Final = 30.0
STEADY_S: Final = 60.0
"""A worker that ran for at least this long restarts without a growing pause."""

QUEUE_STATEMENT_S: Final = 30.0
"""Time-out of the queue's own statements, which are all short: that is how a frozen database is noticed."""


def run() -> int:
    """Work until TERM or INT; returns the exit code: 1 when there was no database for `worker.give_up_after_s`.

    Other workers run the jobs of a worker that died.
    """
    history.end_process_when_forked()
    return asyncio.run(_work())


async def _work() -> int:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    relay = Relay()
    relay.start()
    try:
        return await _spells(stopping)
    finally:
        await asyncio.to_thread(relay.stop)


async def _spells(stopping: asyncio.Event) -> int:
    patience_s = config.current().worker.give_up_after_s
    pause_s, answered_at = 0.0, time.monotonic()
    while not stopping.is_set():
        begun = time.monotonic()
        jobs = HeldJobs(_connector(), answered_at=answered_at, is_stopping=stopping.is_set)
        spell = asyncio.create_task(_spell(jobs))
        await _until_over(spell, stopping, jobs, patience_s)
        answered_at = jobs.answered_at
        if stopping.is_set():
            break
        if patience_s and time.monotonic() - answered_at >= patience_s:
            logger.error("the database has been unreachable for %d s: the worker stops", patience_s)
            return 1
        pause_s = 0.5 if time.monotonic() - begun > STEADY_S else min(max(0.5, 2 * pause_s), LONGEST_PAUSE_S)
        logger.warning("the worker starts again in %.1f s: %s", pause_s, _reason(spell))
        await asyncio.wait([asyncio.create_task(stopping.wait())], timeout=pause_s)
    return 0


async def _spell(jobs: HeldJobs) -> None:
    """Register the worker and run jobs until it is cancelled or fails."""
    settings = config.current().worker
    connector = jobs.connector
    assert isinstance(connector, PsycopgConnector)  # noqa: S101 `_connector` made it
    with app.replace_connector(connector) as running:
        running.job_manager = jobs
        async with running.open_async():
            await running.run_worker_async(
                concurrency=settings.tasks_at_once,
                queues=list(settings.queues) or None,  # type: ignore[arg-type]  # None is all, as its default is
                name="lakewarden",
                delete_jobs="successful",
                install_signal_handlers=False,
                worker_middleware=[holding.announced],
            )


async def _until_over(spell: "asyncio.Task[None]", stopping: asyncio.Event, jobs: HeldJobs, patience_s: float) -> None:
    """Wait until the worker ends; cancel it if it must stop, or the database was not reachable for too long."""
    stop = asyncio.create_task(stopping.wait())
    while not (spell.done() or stop.done()):
        if patience_s and time.monotonic() - jobs.answered_at >= patience_s:
            break
        await asyncio.wait({spell, stop}, timeout=1, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if not spell.done():
        spell.cancel()  # running jobs may finish
        await asyncio.wait({spell})


def _connector() -> PsycopgConnector:
    parameters = connector_params() | {"application_name": "lakewarden worker"}
    return PsycopgConnector(kwargs=parameters, connection_class=AsyncBounded, configure=_configure)


async def _configure(connection: AsyncBounded) -> None:
    was = connection.autocommit
    await connection.set_autocommit(True)
    await begin_async(connection, limits.current().at_most(QUEUE_STATEMENT_S))
    await connection.set_autocommit(was)


def _reason(spell: "asyncio.Task[None]") -> str:
    if spell.cancelled() or (error := spell.exception()) is None:
        return "it ended by itself"
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {str(cause).strip()}"
