"""Starts a child process that serves HTTP on 127.0.0.1, and waits until it answers."""

import time
from collections.abc import Callable

import urllib3

from standalone import ports
from standalone.errors import EmbeddedError
from standalone.process import ManagedProcess

_ATTEMPTS = 3
_RELEASE_S = 3.0
_OK = 200


def start_web_server(
    make: Callable[[int], ManagedProcess],
    *,
    path: str,
    fixed_port: int | None = None,
    preferred_port: int | None = None,
    timeout_s: float = 60.0,
) -> tuple[ManagedProcess, int]:
    """Start `make(port)` and return it with its port once `GET path` answers 200.

    The port is `fixed_port`; else `preferred_port` if it is free, else a free one, and another one if a stranger
    is quicker. `EmbeddedError`: the fixed port is taken, the child ended, or it did not answer in `timeout_s`
    seconds. The child is stopped then.
    """
    if fixed_port is not None:
        require_free(fixed_port)
    port = fixed_port or preferred_port or ports.free_port()
    for attempt in range(_ATTEMPTS):
        if fixed_port is None and (attempt > 0 or ports.is_taken(port)):
            port = ports.free_port()
        child = make(port)
        try:
            child.start()
            if _answers(child, f"http://{ports.HOST}:{port}{path}", timeout_s=timeout_s):
                return child, port
        except BaseException:
            child.stop()
            raise
        if fixed_port is not None or not ports.is_taken(port):
            break
    raise EmbeddedError(child.obituary(when="while starting"))


def require_free(port: int) -> None:
    """`EmbeddedError` that names the holder if `port` is taken.

    Waits a moment first: a server that was killed just now may still be going.
    """
    deadline = time.monotonic() + _RELEASE_S
    try:
        while ports.is_taken(port):
            if time.monotonic() > deadline:
                holder = ports.find_holder(port) or "another program"
                raise EmbeddedError(f"Port {port} is taken by {holder}: stop it, or give another port with --port.")
            time.sleep(0.1)
    except PermissionError as error:
        raise EmbeddedError(
            f"Port {port} may not be used by this process: permission denied ({error.strerror}): give "
            "one above 1023 with --port."
        ) from error


def _answers(child: ManagedProcess, url: str, *, timeout_s: float) -> bool:
    """True if it answers 200 and is running; False if it has ended."""
    deadline = time.monotonic() + timeout_s
    seen = "no answer"
    with urllib3.PoolManager(retries=False, timeout=5.0) as client:
        while not child.exited:
            try:
                response = client.request("GET", url)
                seen = f"HTTP {response.status}"
            except urllib3.exceptions.HTTPError as error:
                seen = str(error)
            if seen == f"HTTP {_OK}":
                return not child.exited
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"{child.name} is not ready after {timeout_s:.0f} s ({url}: {seen}). Log: {child.log}"
                )
            time.sleep(0.1)
    return False
