"""Opens sockets: who, into which warehouse, and whether there is room; keeps their leases."""

import asyncio
import logging
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, Final
from uuid import UUID

from ingest.api.callers import Sender, authorization
from ingest.api.routes import Asked, label
from ingest.api.socket import Receive, Send, Socket
from ingest.api.warehouses import find
from ingest.rates import Buckets
from ingest.services import leases
from ingest.services.statements import LogUnavailable
from lakewarden import config
from lakewarden.context import RequestContext
from lakewarden.errors import LakewardenError, TooManyRequests, Unavailable
from lakewarden.hot.routes import Answer
from lakewarden.http import health
from lakewarden.http.call_recording import note_call, note_refused
from lakewarden.http.refusal import refusal
from lakewarden.ids import new_id
from lakewarden.networks import network_of

logger = logging.getLogger(__name__)

_settings = config.current().ingest
_OPENINGS: Final = Buckets(_settings.connections_per_s, _settings.connections_per_s)
_SWITCHING: Final = 101


async def open_socket(asked: Asked, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """A whole life of a socket, from its handshake on."""
    headers = dict(scope["headers"])
    authorized, chosen = authorization(headers, list(scope.get("subprotocols", ())))
    sender = Sender(authorized, headers, network_of((scope.get("client") or ("", 0))[0]))
    await receive()  # websocket.connect
    identifier = sender.request_id()
    try:
        if health.STOPPING.is_set():
            raise Unavailable("The connection was not opened: this server is stopping")
        context = await sender.context()
        warehouse_id = await _permitted(asked, context, sender)
        lease = await _placed(warehouse_id, context, sender)
    except LakewardenError as error:
        await _refuse(send, refusal(error, identifier))
        return
    try:
        with _KEEPER.keeping():
            accepted: dict[str, Any] = {"type": "websocket.accept", "headers": [(b"x-request-id", identifier.encode())]}
            await send(accepted if chosen is None else {**accepted, "subprotocol": chosen})
            await Socket(sender, warehouse_id, send, lease=lease).serve(receive)
    finally:
        with suppress(LogUnavailable):  # then it ends by itself
            await asyncio.shield(leases.give_back(lease))


async def _permitted(asked: Asked, context: RequestContext, sender: Sender) -> UUID:
    try:
        found = await find(asked, context)
    except LakewardenError as error:
        note_refused(context, label(asked, "GET"), error, address=sender.address)
        raise
    note_call(context, label(asked, "GET"), _SWITCHING)
    return found


async def _placed(warehouse_id: UUID, context: RequestContext, sender: Sender) -> UUID:
    """The lease of a place. Raises TooManyRequests, Unavailable."""
    bucket = _OPENINGS.of((warehouse_id, context.caller.id))
    if not bucket.take():
        raise TooManyRequests(
            f"Too many new connections: {_settings.connections_per_s} per second are allowed",
            retry_after_s=1,
        )
    lease = new_id()
    try:
        found = await leases.take(
            lease, warehouse_id, address=sender.address, principal=context.caller.id,
            source_id=(sender.header("x-client-id") or "")[:255],
        )  # fmt: skip
        for whose, count, most in (
            ("one address", found.of_address, _settings.connections_per_address),
            ("one caller in a warehouse", found.of_caller, _settings.connections_per_caller),
            ("one warehouse", found.of_warehouse, _settings.connections_per_warehouse),
            ("one project", found.of_project, _settings.connections_per_project),
        ):
            if count > most:
                await leases.give_back(lease)
                raise TooManyRequests(f"Too many connections: at most {most} of {whose} are allowed", retry_after_s=5)
    except LogUnavailable as error:
        raise Unavailable("The log of the events is not available: try again shortly") from error
    return lease


async def _refuse(send: Send, answer: Answer) -> None:
    status, headers, content = answer
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": content})


class _Keeper:
    """Renews the leases of this process while it has sockets; a failure is tried again in the next turn."""

    def __init__(self) -> None:
        self._sockets = 0
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def keeping(self) -> Iterator[None]:
        self._sockets += 1
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            self._sockets -= 1
            if not self._sockets and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_settings.lease_s / 3)
            try:
                await leases.renew()
            except LogUnavailable as error:
                logger.warning("The leases of sockets were not renewed: %s", error)


_KEEPER: Final = _Keeper()
