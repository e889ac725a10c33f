"""How the soak's clients send requests: each answer becomes an outcome, and none is waited for longer than engines do."""

import asyncio
from dataclasses import dataclass
from time import monotonic
from typing import Any

from tests.integration.replicas.exchange import Answer, Call, Exchange, Lost, NotThere
from tests.soak.ledger import Outcome

PATIENCE_S = 12.0
_UNKNOWN = frozenset({500, 502, 504})


@dataclass(frozen=True, slots=True)
class Reply:
    """`answer` is None when none came; `start` and `end` are monotonic."""

    answer: Answer | None
    outcome: Outcome
    start: float
    end: float

    @property
    def status(self) -> int:
        """0 when no answer came."""
        return 0 if self.answer is None else self.answer.status

    @property
    def content(self) -> Any:
        assert self.answer is not None
        return self.answer.json()


async def ask(exchange: Exchange, call: Call) -> Reply:
    start = monotonic()
    try:
        answer = await asyncio.wait_for(exchange.answer(call), PATIENCE_S)
    except NotThere:
        return Reply(None, Outcome.REFUSED, start, monotonic())
    except (Lost, OSError, TimeoutError):
        return Reply(None, Outcome.UNKNOWN, start, monotonic())
    return Reply(answer, outcome_of(answer.status), start, monotonic())


def outcome_of(status: int) -> Outcome:
    """503 promises that nothing was applied, 500 that the outcome is not known."""
    if status < 300:
        return Outcome.ACKNOWLEDGED
    return Outcome.UNKNOWN if status in _UNKNOWN else Outcome.REFUSED
