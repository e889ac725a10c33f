"""Writes an answer at once, head and body, where ASGI would take two messages: one system call instead of two."""

from typing import Final

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from lakewarden.hot.routes import Answer
from lakewarden.http.lane import head_of

WHOLE: Final = "lakewarden.whole"
"""Where the scope of a request keeps the function that answers it so."""


class WholeAnswer:
    """For one request; `cycle` is uvicorn's state of it."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def send(self, answer: Answer) -> bool:
        """Whether it was sent; False for one that ASGI's messages must carry: nothing has been sent of it then.

        That is one that has no head of its own (see `head_of`), or that would wait for the client to read.
        """
        cycle = self._cycle
        if cycle.disconnected or cycle.response_started or cycle.access_log or cycle.flow.write_paused:
            return False
        head = head_of(answer, cycle.default_headers, keep_alive=cycle.keep_alive)
        if head is None:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.transport.write(head + answer[2])
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True
