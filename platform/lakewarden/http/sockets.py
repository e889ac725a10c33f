"""WebSockets on uvicorn's connections: which requests may become one, what one may cost, and how one ends."""

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from asyncio import Task, TimerHandle

STOPPING: Final = "lakewarden.stopping"
"""The type of the message that a socket's application receives when the server begins to stop: it then closes."""
MOST_FRAMES: Final = 1024
"""Fragments, pings and pongs between two messages: the size of messages limits neither their number nor their cost."""
_PART: Final = 16 * 1024  # bytes: frames of a few bytes take more than their share of the loop
_POLICY: Final = 1008


class BoundedSocket(WebSocketsSansIOProtocol):
    """uvicorn would parse whatever has arrived at once, answer pings that nobody reads, wait for ever until a client
    has read what it closes with, and close the connection on stopping without asking its application, which has answers
    to send.
    """

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 uvicorn's
        super().__init__(*given, **named)
        self._unparsed = b""
        self._frames = 0
        self._end: TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        self._parse()

    async def receive(self) -> Any:  # noqa: ANN401 ASGI's
        message = await super().receive()
        self._parse()
        return message

    def _parse(self) -> None:
        """Up to a message: what follows it waits until the application asks for the next one."""
        while self._unparsed and not self.read_paused:
            part, self._unparsed = self._unparsed[:_PART], self._unparsed[_PART:]
            super().data_received(part)
            if self.transport.is_closing():
                self._unparsed = b""

    def send_receive_event_to_app(self) -> None:
        self._frames = 0
        super().send_receive_event_to_app()

    def handle_cont(self, event: Any) -> None:  # noqa: ANN401 uvicorn's
        self._count()
        super().handle_cont(event)

    def handle_ping(self) -> None:
        self._count()
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()  # the answers, for which there is no room

    def handle_pong(self, event: Any) -> None:  # noqa: ANN401 uvicorn's
        self._count()
        super().handle_pong(event)

    def _count(self) -> None:
        self._frames += 1
        if self._frames > MOST_FRAMES and not self.close_sent:
            self.conn.fail(_POLICY, f"More than {MOST_FRAMES} fragments and pings without a message")
            self.handle_parser_exception()

    def on_task_complete(self, task: "Task[None]") -> None:
        super().on_task_complete(task)
        if not self.disconnected:
            self._end = self.loop.call_later(self.close_timeout, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._end is not None:
            self._end.cancel()

    def shutdown(self) -> None:
        if self.handshake_complete and not self.close_sent:
            self.stop_keepalive()
            stopping: Any = {"type": STOPPING}
            self.queue.put_nowait(stopping)
        else:
            super().shutdown()


def is_socket(url: bytes) -> bool:
    """Whether a request for this may become a socket; any other is answered as if it had not asked for it."""
    path, _, _ = url.partition(b"?")
    return path.startswith(b"/lakehouse/") and path.endswith(b"/ws")
