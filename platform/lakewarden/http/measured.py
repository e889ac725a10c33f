"""Measures the requests of this process for Prometheus; asgi.py imports it only if metrics are configured."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache, partial
from time import perf_counter
from typing import Any, Final

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

from lakewarden.authz.decision_cache import HELD_PRIVILEGES
from lakewarden.hot.coalescer import TOTALS
from lakewarden.hot.routes import Answer, HotRequest, Repeat, WholeAnswer
from lakewarden.hot.sessions import Row
from lakewarden.http import health
from lakewarden.http.bodies import Receive
from lakewarden.http.bridge import Scope, raw_path
from lakewarden.http.lane import TRIED, Application, Lane
from lakewarden.http.repeats import Key, Repeats
from lakewarden.http.request_threads import THREADS
from lakewarden.http.route_names import Labels
from lakewarden.http.whole_answers import WHOLE

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Observe = Callable[[str, bytes, int, float], None]

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SAMPLED_EVERY_S: Final = 2.0
_UNANSWERED: Final = 499
"""The status of a request whose client did not wait."""

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more for each, which nobody asks for

SECONDS: Final = Histogram(
    "lakewarden_http_request_duration_seconds",
    "Time from the end of a request's headers to its answer.",
    ["route", "status"],
    buckets=_BUCKETS,
)
IN_PROGRESS: Final = Gauge("lakewarden_http_requests_in_progress", "Requests in progress.", multiprocess_mode="livesum")
_BUSY: Final = Gauge(
    "lakewarden_request_threads_busy",
    "Request threads, each with a connection, that work.",
    multiprocess_mode="livesum",
)
_WAITING: Final = Gauge("lakewarden_requests_waiting", "Requests that wait for a thread.", multiprocess_mode="livesum")
_LOOKUPS: Final = Counter("lakewarden_lookups", "Look-ups of hot reads.")
_STATEMENTS: Final = Counter("lakewarden_lookup_statements", "Statements that answered them, several with each.")
_DECISIONS: Final = Counter(
    "lakewarden_decisions_made", "Decisions that were not known under the present authorization epoch."
)
_KNOWN: Final = Gauge("lakewarden_decisions_known", "Decisions in memory.", multiprocess_mode="livesum")


class Measured:
    """The application and its lane, with the duration and status of each request."""

    def __init__(self, application: Application, labels: Labels) -> None:
        self._application = application
        self._observe = _Observer(labels).observe
        self.lane = _MeasuredLane(application.lane, self._observe)
        threading.Thread(target=_sample, name="metrics", daemon=True).start()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope.get(TRIED) is not None:  # the lane has measured that
            await self._application(scope, receive, send)
            return
        status = _UNANSWERED

        async def noting(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        def noting_whole(send_whole: Callable[[Answer], bool], answer: Answer) -> bool:
            nonlocal status
            is_sent = send_whole(answer)
            status = answer[0] if is_sent else status
            return is_sent

        if (whole := scope.get(WHOLE)) is not None:
            scope[WHOLE] = partial(noting_whole, whole)
        began = perf_counter()
        IN_PROGRESS.inc()
        try:
            await self._application(scope, receive, noting)
        finally:
            IN_PROGRESS.dec()
            self._observe(scope["method"], raw_path(scope), status, perf_counter() - began)


class _MeasuredLane:
    """See `http.lane.Lane`."""

    def __init__(self, lane: Lane, observe: Observe) -> None:
        self._lane = lane
        self._observe = observe
        self.repeats: Repeats = _MeasuredRepeats(lane.repeats, observe)
        self.request = lane.request
        self.may_repeat = lane.may_repeat

    def answer(self, request: HotRequest) -> Awaitable[Answer | None]:
        return self._measured(request, self._lane.answer(request))

    def again(self, repeat: Repeat, looking: asyncio.Future[Row | None] | None) -> Awaitable[Answer | None]:
        found = repeat.of if isinstance(repeat, _MeasuredRepeat) else repeat
        return self._measured(repeat.request, self._lane.again(found, looking))

    async def _measured(self, request: HotRequest, answering: Awaitable[Answer | None]) -> Answer | None:
        began = perf_counter()
        answer = await answering
        if answer is not None:
            self._observe(request.method, request.path, answer[0], perf_counter() - began)
        return answer


class _MeasuredRepeats(Repeats):
    """What it finds measures itself: the connection sends an answer that was kept without asking the lane."""

    def __init__(self, repeats: Repeats, observe: Observe) -> None:
        self._repeats = repeats
        self._observe = observe
        self.keeper = repeats.keeper  # type: ignore[method-assign]

    def find(self, key: Key) -> Repeat | None:
        found = self._repeats.find(key)
        return None if found is None else _MeasuredRepeat(found, self._observe)

    def keep(self, key: Key, repeat: Repeat, *, size: int) -> None:
        self._repeats.keep(key, repeat.of if isinstance(repeat, _MeasuredRepeat) else repeat, size=size)


class _MeasuredRepeat:
    def __init__(self, of: Repeat, observe: Observe) -> None:
        self.of = of
        self.request = of.request
        self.caller = of.caller
        self.is_known = of.is_known
        self.look_up = of.look_up
        self.answer = of.answer
        self.sent = of.sent
        self._observe = observe
        self._began = perf_counter()

    def at_once(self, looking: asyncio.Future[Row | None]) -> tuple[WholeAnswer, bytes] | None:
        found = self.of.at_once(looking)
        if found is not None:
            asked = self.request
            self._observe(asked.method, asked.path, found[0].status, perf_counter() - self._began)
        return found


class _Observer:
    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        # engines ask for the same tables again and again
        self._series_of = lru_cache(maxsize=4096)(self._found)

    def observe(self, method: str, path: bytes, status: int, seconds: float) -> None:
        if path not in health.PATHS:  # what probes ask every few seconds
            self._series_of(method, path, status).observe(seconds)

    def _found(self, method: str, path: bytes, status: int) -> Histogram:
        return SECONDS.labels(self._labels.of(method, path), status)


def _sample() -> None:
    lookups = statements = made = 0
    pause = threading.Event()
    while not pause.wait(_SAMPLED_EVERY_S):
        _BUSY.set(THREADS.running)
        _WAITING.set(THREADS.waiting)
        _KNOWN.set(len(HELD_PRIVILEGES))
        _LOOKUPS.inc(TOTALS.lookups - lookups)
        _STATEMENTS.inc(TOTALS.statements - statements)
        _DECISIONS.inc(HELD_PRIVILEGES.made - made)
        lookups, statements, made = TOTALS.lookups, TOTALS.statements, HELD_PRIVILEGES.made
