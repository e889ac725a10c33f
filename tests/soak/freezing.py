"""A server is frozen while it holds a row's lock, and as many requests as another has threads want that row there."""

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import urllib3

from lakewarden.embedded.ports import HOST
from tests.soak.mending import Mend, Unmended
from tests.soak.stack import Stack

OTHERS_ANSWER_WITHIN_S = 12.0
"""Longer than the servers wait for a lock."""
_WRITERS, _WAITERS = 4, 16
_SEEN_WITHIN_S = 3.0
_IDLE = "select 1 from pg_stat_activity where application_name = %s and state like 'idle in transaction%%'"
_COMMIT = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"hot": "x"}}]}


def freeze_lock_holder(stack: Stack, rng: random.Random) -> Mend:
    """Until the other server has answered, which it must do in its time."""
    frozen = rng.randrange(2)
    pid, over = stack.replicas[frozen].process.pid, Event()
    pool = ThreadPoolExecutor(_WRITERS + _WAITERS)
    for _ in range(_WRITERS):
        pool.submit(_write_on, stack, frozen, over)
    with stack.database() as database:
        deadline = time.monotonic() + _SEEN_WITHIN_S
        while not database.execute(_IDLE, [f"replica_{'ab'[frozen]}"]).fetchone() and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(pid, signal.SIGSTOP)
    over.set()
    for _ in range(_WAITERS):
        pool.submit(_ask, stack, 1 - frozen, "POST", stack.hot)

    def mend() -> None:
        try:
            _others_answer(stack, 1 - frozen)
        finally:
            os.kill(pid, signal.SIGCONT)
            pool.shutdown()

    return mend


def _others_answer(stack: Stack, number: int) -> None:
    deadline = time.monotonic() + OTHERS_ANSWER_WITHIN_S
    for path in ("/health", stack.hot):
        while _ask(stack, number, "GET", path) != 200:
            if time.monotonic() > deadline:
                raise Unmended(
                    f"a server did not answer GET {path} for {OTHERS_ANSWER_WITHIN_S:.0f} s while another was frozen"
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
