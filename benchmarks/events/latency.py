"""How long commits over REST take while sinks are up, slow and away, in short blocks that alternate in one run."""

import os
import signal
import statistics
import time
from typing import TYPE_CHECKING, Final

from benchmarks.events.scene import Scene, certain_median, middle

if TYPE_CHECKING:
    from collections.abc import Callable

_BLOCK: Final = 20  # commits of a state in a round
_STATES: Final = ("no relay", "sinks up", "webhook slow", "all away")


def latency(scene: Scene, rounds: int) -> None:
    """One worker serves all sinks all the time. States begin at once: the worker, or what it sends to, is frozen."""
    scene.kill(len(scene.workers))
    scene.start(1)
    scene.until(lambda: all(map(scene.is_served, ("kafka", "nats", "webhook"))), "the worker")
    scene.until_delivered()
    (worker,) = scene.workers
    kafka, nats = scene.kafka.process, scene.nats.process

    def freeze(*, frozen: bool) -> None:
        for each in (kafka, nats):
            os.killpg(each.pid, signal.SIGSTOP if frozen else signal.SIGCONT)
        scene.webhook.is_away = frozen

    def slow(seconds: float) -> None:
        scene.webhook.delay_s = seconds

    begin: dict[str, Callable[[], None]] = {
        "no relay": lambda: worker.send_signal(signal.SIGSTOP),
        "sinks up": scene.until_delivered,
        "webhook slow": lambda: slow(0.05),
        "all away": lambda: freeze(frozen=True),
    }
    end: dict[str, Callable[[], None]] = {
        "no relay": lambda: worker.send_signal(signal.SIGCONT),
        "sinks up": lambda: None,
        "webhook slow": lambda: slow(0),
        "all away": lambda: freeze(frozen=False),
    }
    medians: dict[str, list[float]] = {state: [] for state in _STATES}
    longest: dict[str, list[float]] = {state: [] for state in _STATES}
    used: dict[str, float] = dict.fromkeys(_STATES, 0.0)
    passed: dict[str, float] = dict.fromkeys(_STATES, 0.0)
    cost: dict[str, float] = dict.fromkeys(_STATES, 0.0)
    for number in range(rounds):
        # another order each time, so that none always follows the same one
        for state in _STATES[number % 4 :] + _STATES[: number % 4]:
            begin[state]()
            began, before, served = time.monotonic(), scene.processor_s(), scene.server_s()
            taken = [scene.lake.commit() * 1000 for _ in range(_BLOCK)]
            passed[state] += time.monotonic() - began
            used[state] += scene.processor_s() - before
            cost[state] += scene.server_s() - served
            end[state]()
            medians[state].append(statistics.median(taken))
            longest[state].append(statistics.quantiles(taken, n=20)[18])
        scene.until_delivered()
    print(f"\n{rounds} rounds of {_BLOCK} commits for each state, in another order each time\n")
    print("| sinks | p50 of a block (ms) | p95 of a block (ms) | p50 beyond the round's without a relay (ms) |", end="")
    print(" server's processor time for a commit (ms) | relay's core |\n|---|---|---|---|---|---|")
    for state in _STATES:
        beyond = [mine - plain for mine, plain in zip(medians[state], medians["no relay"], strict=True)]
        shown = "" if state == "no relay" else certain_median(beyond)
        each, core = cost[state] / (rounds * _BLOCK) * 1000, used[state] / passed[state]
        print(f"| {state} | {middle(medians[state])} | {middle(longest[state])} | {shown} | {each:.2f} | {core:.2f} |")
    scene.kill(1)
