"""Calls that begin at the same time."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.servers.asgi_client import Answer


def at_once(calls: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """The answers of all calls, which start together."""
    together = Barrier(len(calls))

    def run(call: Callable[[], Answer]) -> Answer:
        together.wait(10)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))
