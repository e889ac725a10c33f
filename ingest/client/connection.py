"""One socket to the gateway: opened with a token, with time-outs on everything, its errors as ours."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING

from ingest.client import messages
from ingest.client.errors import ConnectionLost
from lakewarden.errors import Forbidden, InvalidArgument, LakewardenError, NotFound

if TYPE_CHECKING:
    from websockets.http11 import Response

OPEN_TIMEOUT_S = 15.0
CLOSE_TIMEOUT_S = 5.0
MAX_RECEIVED = 4 * 1024 * 1024
"""Bytes of a message from the gateway: the answer to a flush names many paths."""

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_DENIED = {1008, 3000, 3003, 4401, 4403}
"""Close codes for a caller who is not, or no longer, allowed (RFC 6455, section 7.4.1, and IANA's registry)."""


def socket_address(address: str, warehouse: str | None) -> str:
    """The socket's address below that of the gateway, `http(s)://host/lakehouse`. Raises `InvalidArgument`."""
    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in _SCHEMES or not rest.strip("/"):
        raise InvalidArgument(
            f"{address!r} is not a valid address of a gateway: it must look like https://host:port/lakehouse."
        )
    path = f"/w/{warehouse}" if warehouse else ""
    return f"{_SCHEMES[scheme]}://{rest.rstrip('/').removesuffix('/ws')}{path}/ws"


class Connection:
    """Raises `ConnectionLost` from every method once the socket has ended."""

    def __init__(self, address: str, *, headers: Mapping[str, str]) -> None:
        from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI  # noqa: PLC0415  100 ms
        from websockets.sync.client import connect  # noqa: PLC0415

        self._stack = ExitStack()
        try:
            self._socket = self._stack.enter_context(
                connect(
                    address,
                    additional_headers=dict(headers),
                    compression=None,
                    open_timeout=OPEN_TIMEOUT_S,
                    close_timeout=CLOSE_TIMEOUT_S,
                    max_size=MAX_RECEIVED,
                )
            )
        except InvalidStatus as error:
            raise _refusal(address, error.response) from None
        except InvalidURI as error:
            raise InvalidArgument(f"{address!r} is not a valid address: {error}") from None
        except (OSError, InvalidHandshake) as error:
            raise ConnectionLost(f"{address} does not answer ({error or type(error).__name__})") from error

    def send(self, message: bytes) -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415

        try:
            self._socket.send(message, text=True)
        except ConnectionClosed as error:
            raise _closed(error) from error

    def receive(self, timeout_s: float) -> messages.Received | None:
        """The next message; None if none that this client knows came in time."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415

        try:
            return messages.decode(self._socket.recv(timeout=timeout_s))
        except TimeoutError:
            return None
        except ConnectionClosed as error:
            raise _closed(error) from error

    def close(self) -> None:
        self._stack.close()


def _closed(error: Exception) -> ConnectionLost:
    received = getattr(error, "rcvd", None)
    if received is None:
        return ConnectionLost("the connection was lost")
    reason = f": {received.reason}" if received.reason else ""
    return ConnectionLost(
        f"the gateway closed the connection with code {received.code}{reason}", was_denied=received.code in _DENIED
    )


def _refusal(address: str, answer: "Response") -> LakewardenError:
    status = answer.status_code
    said = _message(answer.body) or HTTPStatus(status).phrase if status in list(HTTPStatus) else str(status)
    sentence = f"{address} answered {status}: {said.rstrip('.')}."
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return ConnectionLost(sentence, was_denied=True)
        case HTTPStatus.FORBIDDEN:
            return Forbidden(sentence)
        case HTTPStatus.NOT_FOUND:
            return NotFound(sentence + " Check the address and the warehouse.")
        case HTTPStatus.TOO_MANY_REQUESTS | HTTPStatus.REQUEST_TIMEOUT:
            return ConnectionLost(sentence, retry_after_s=_seconds(answer.headers.get("Retry-After")))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ConnectionLost(sentence, retry_after_s=_seconds(answer.headers.get("Retry-After")))
    return InvalidArgument(sentence)


def _message(body: bytes | bytearray | None) -> str:
    """The sentence in an error of the Iceberg model (`{"error": {"message": …}}`), else nothing."""
    try:
        error = json.loads(body or b"")["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return ""


def _seconds(value: str | None) -> float:
    return float(value) if value is not None and value.isdecimal() else 0.0
