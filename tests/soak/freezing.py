"""A server is frozen while it holds a row's lock, and as many requests as another has threads want that row there."""

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import urllib3

from standalone.ports import HOST
from tests.soak.mending import Mend, Unmended
from tests.soak.stack import Stack

OTHERS_ANSWER_WITHIN_S = 12.0
"""Longer than the servers wait for a lock."""
_WRITERS, _WAITERS = 4, 16
_SEEN_WITHIN_S = 3.0
_IS_FREE = "select 1 from tabular where name = %s for update skip locked"
_COMMIT = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"hot": "x"}}]}


def freeze_lock_holder(stack: Stack, rng: random.Random) -> Mend:
    """Until the other server has answered, which it must do in its time."""
    frozen = rng.randrange(2)
    pids, over = stack.pids_of(stack.replicas[frozen]), Event()
    pool = ThreadPoolExecutor(_WRITERS + _WAITERS)
    for _ in range(_WRITERS):
        pool.submit(_write_on, stack, frozen, over)
    _freeze_holding(stack, pids)
    over.set()
    for _ in range(_WAITERS):
        pool.submit(_ask, stack, 1 - frozen, "POST", stack.hot)

    def mend() -> None:
        try:
            _others_answer(stack, 1 - frozen)
        finally:
            _signal(pids, signal.SIGCONT)
            pool.shutdown()

    return mend


def _freeze_holding(stack: Stack, pids: list[int]) -> None:
    """Stop the processes at a moment at which one holds the row of the hot table; after a while at any moment."""
    name = stack.hot.rpartition("/")[2]
    deadline = time.monotonic() + _SEEN_WITHIN_S
    with stack.database() as database:
        while True:
            _signal(pids, signal.SIGSTOP)
            time.sleep(0.01)  # what it had sent before has arrived
            if time.monotonic() > deadline or not database.execute(_IS_FREE, [name]).fetchone():
                return
            _signal(pids, signal.SIGCONT)
            time.sleep(0.001)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _others_answer(stack: Stack, number: int) -> None:
    deadline = time.monotonic() + OTHERS_ANSWER_WITHIN_S
    for method, path in (("GET", "/health"), ("GET", stack.hot), ("POST", stack.calm)):
        while _ask(stack, number, method, path) != 200:
            if time.monotonic() > deadline:
                raise Unmended(
                    f"a server did not answer {method} {path} for {OTHERS_ANSWER_WITHIN_S:.0f} s while another was frozen"
                )


def _write_on(stack: Stack, number: int, over: Event) -> None:
    while not over.is_set():
        _ask(stack, number, "POST", stack.hot)


def _ask(stack: Stack, number: int, method: str, path: str) -> int:
    """The status, 0 when there was no answer."""
    headers = {"authorization": f"Bearer {stack.people[0].token}"}
    body = _COMMIT if method == "POST" else None
    try:
        with urllib3.PoolManager(retries=False, timeout=OTHERS_ANSWER_WITHIN_S / 3) as http:
            return http.request(method, f"http://{HOST}:{stack.ports[number]}{path}", headers=headers, json=body).status
    except urllib3.exceptions.HTTPError:
        return 0
