"""Refuses requests whose headers never end, which the parser would keep in memory; used by `lakewarden.serving`."""

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lakewarden.errors import HeadersTooLarge
from lakewarden.ids import new_id_text

MAX_HEADER_BYTES = 64 * 1024
"""A token may take 16 KiB of it."""


class BoundedHeaders(HttpToolsProtocol):
    """One connection; answers 431 (RFC 6585, section 5) and closes it when a request's head grows past the limit."""

    _head_bytes: int | None = 0
    """What has come of a head that is not complete; None while a body is read."""

    def data_received(self, data: bytes) -> None:
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(_refusal())
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._head_bytes = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        super().on_message_complete()


def _refusal() -> bytes:
    error = HeadersTooLarge(f"The request's headers are larger than {MAX_HEADER_BYTES} bytes")
    told = {"error": {"message": error.message, "type": error.wire_type, "code": error.status}}
    body = msgspec.json.encode(told)
    head = (
        f"HTTP/1.1 {error.status} Request Header Fields Too Large\r\n"
        "content-type: application/json\r\n"
        f"content-length: {len(body)}\r\n"
        f"x-request-id: {new_id_text()}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body
