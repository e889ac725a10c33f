"""Commands that run the server and its background work."""

import os
import sys

import click

from lakewarden import config
from lakewarden.cli.setup import load_django, require_current, require_keys, tell_of_few_sessions
from lakewarden.postgres import allowed_sessions, limits


@click.command()
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Number of processes [default: LAKEWARDEN__SERVER__PROCESSES, or one for each core, but no more than a "
    "quarter "
    "of LAKEWARDEN__SERVER__THREADS].",
)
def serve(*, processes: int | None) -> None:
    """Run the server (/catalog, /management, /console) until TERM, INT or HUP.

    It starts several processes, which share the port, to use all cores of the machine. The limits of threads,
    connections and memory are those of the whole server and are divided among the processes. To use 8 cores, set
    LAKEWARDEN__SERVER__THREADS to at least 32, and let PostgreSQL accept that many connections and 8 more for each
    process. A process that ends or hangs is replaced while the others keep running.

    It does not start if the database is not migrated, or holds secrets whose key is not configured.
    """
    from lakewarden.stop import Stop

    stop = Stop()
    stop.watch()
    if processes is not None:
        os.environ[f"{config.PREFIX}SERVER__PROCESSES"] = str(processes)
    settings = load_django()
    require_current(waits=True)
    require_keys()
    tell_of_few_sessions(allowed_sessions.needed_by_server(settings))
    from lakewarden.serving.run import run

    sys.exit(run(settings, stop))


@click.command("serve-one", hidden=True)
@click.argument("listener", type=int)
@click.argument("lifeline", type=int)
@click.argument("shared", type=int)
@click.argument("processes", type=int)
@click.argument("row", type=int)
def serve_one(*, listener: int, lifeline: int, shared: int, processes: int, row: int) -> None:
    """Run one of the processes of `serve`, which starts this command with its file descriptors."""
    from lakewarden import board
    from lakewarden.stop import Stop

    stop = Stop(is_one_of_several=True)
    stop.watch()
    board.join(shared, processes=processes, row=row)
    settings = load_django()
    require_current(waits=True)
    from lakewarden.serving.run import run_one

    sys.exit(run_one(settings, stop, listener=listener, lifeline=lifeline))


@click.command()
def work() -> None:
    """Run background work (purges and other tasks) until TERM. Any number of workers may run."""
    settings = load_django()
    limits.choose(limits.of_work())
    require_current(waits=True)
    tell_of_few_sessions(allowed_sessions.needed_by_worker(settings))
    from lakewarden.tasks.worker import run

    if settings.metrics.worker_port is not None:
        from lakewarden.serving.listener import PortUnusable
        from lakewarden.serving.metrics import serve_database

        try:
            serve_database(settings.metrics.host, settings.metrics.worker_port)
        except PortUnusable as error:
            raise click.ClickException(str(error)) from None
    if settings.tracing.endpoint is None:
        sys.exit(run())
    from lakewarden.tracing.start import spans_of

    spans = spans_of(settings, role="worker")
    try:
        code = run()
    finally:
        spans.close()
    sys.exit(code)
