"""WebSockets on uvicorn's connections: which requests may become one, and how one ends when the server stops."""

from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

STOPPING: Final = "lakewarden.stopping"
"""The type of the message that a socket's application receives when the server begins to stop: it then closes."""


class BoundedSocket(WebSocketsSansIOProtocol):
    """uvicorn would close the connection without asking its application, which has answers to send."""

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
