"""Writes an answer at once, head and body, where ASGI would take two messages: one system call instead of two.

The checks of names and values that uvicorn makes for each header are made for the whole head.
"""

from typing import Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from lakewarden.hot.routes import Answer

WHOLE: Final = "lakewarden.whole"
"""Where the scope of a request keeps the function that answers it so."""

_END: Final = b"\r\n"
_BODILESS: Final = frozenset({204, 304})


class WholeAnswer:
    """For one request; `cycle` is uvicorn's state of it."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def send(self, answer: Answer) -> bool:
        """Whether it was sent; False for one that ASGI's messages must carry: nothing has been sent of it then.

        That is one whose length is not announced exactly, that speaks of the connection, that holds a line break in a
        header, or that would wait for the client to read.
        """
        cycle = self._cycle
        if cycle.disconnected or cycle.response_started or cycle.access_log or cycle.flow.write_paused:
            return False
        head = self._head(answer)
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

    def _head(self, answer: Answer) -> bytes | None:
        status, given, content = answer
        headers = [*self._cycle.default_headers, *given]
        lines = [STATUS_LINE[status]]
        announced: bytes | None = None
        for name, value in headers:
            if name == b"content-length":
                announced = value
            elif name in {b"connection", b"transfer-encoding"}:
                return None
            lines += (name, b": ", value, _END)
        if not self._cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(_END)
        head = b"".join(lines)
        if status in _BODILESS:
            is_exact = announced is None and not content
        else:
            is_exact = announced is not None and announced == b"%d" % len(content)
        breaks = len(headers) + 2 + (not self._cycle.keep_alive)
        is_clean = head.count(b"\n") == head.count(b"\r") == head.count(_END) == breaks and b"\x00" not in head
        return head if is_exact and is_clean else None
