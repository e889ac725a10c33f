"""Bodies that arrived with their headers are taken at once; others are left to be received."""

from types import SimpleNamespace
from typing import Any

import pytest

from lakewarden.config import ServerConfig
from lakewarden.errors import PayloadTooLarge
from lakewarden.http.arrived_bodies import arrived
from lakewarden.http.bodies import IncomingBody


class Cycle(SimpleNamespace):
    """uvicorn's state of a request, as far as it is looked at."""

    def __init__(self, body: bytes, **state: Any) -> None:
        self.resumed = 0
        flow = SimpleNamespace(resume_reading=self._resume)
        super().__init__(body=bytearray(body), more_body=False, disconnected=False, flow=flow)
        self.__dict__.update(state)

    def _resume(self) -> None:
        self.resumed += 1


def test_a_complete_body_is_taken_once() -> None:
    cycle = Cycle(b"{}")
    take = arrived(cycle)  # type: ignore[arg-type]
    assert (take(), cycle.body, cycle.resumed) == (b"{}", b"", 1)


@pytest.mark.parametrize("state", [{"more_body": True}, {"disconnected": True}])
def test_an_incomplete_body_stays_where_it_is(state: dict[str, bool]) -> None:
    cycle = Cycle(b"{", **state)
    assert arrived(cycle)() is None  # type: ignore[arg-type]
    assert (cycle.body, cycle.resumed) == (b"{", 0)


async def _never() -> dict[str, Any]:
    raise AssertionError


def test_an_accepted_body_needs_no_message_and_keeps_its_limits() -> None:
    limits = ServerConfig.model_validate({"max_body_bytes": 4000, "small_body_bytes": 1024})
    body = IncomingBody(_never, {b"content-length": b"3"}, limits)
    body.accept(b"abc")
    assert (body.is_complete, body.is_small, body.content()) == (True, True, b"abc")
    large = IncomingBody(_never, {b"content-length": b"5000"}, limits)
    large.accept(b"x" * 5000)
    assert not large.is_small
    with pytest.raises(PayloadTooLarge):
        large.ensure_allowed()
