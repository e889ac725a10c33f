"""Publishes events to a stream of NATS JetStream, which stores each once by the id of the event."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Final, TypeVar

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import Header, StorageType, StreamConfig
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from lakewarden.config import NatsSinkConfig
from lakewarden.events.envelope import CONTENT_TYPE
from lakewarden.events.sinks.interface import EnsureMine, Message, Refused, SinkFailed

_TOO_LARGE: Final = 10054  # JetStream's own number of the error
_AT_ONCE: Final = 256  # messages that wait for their acknowledgements

T = TypeVar("T")


class NatsSink:
    """The client needs a running event loop, also while there is nothing to deliver: a thread of its own runs it."""

    def __init__(self, settings: NatsSinkConfig, ensure_mine: EnsureMine) -> None:
        self._settings, self._ensure_mine = settings, ensure_mine
        self._client: Client | None = None
        self._trouble: Exception | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nats", daemon=True)
        self._thread.start()

    def deliver(self, messages: Sequence[Message]) -> Sequence[Refused]:
        return self._run(self._deliver(messages))

    def close(self) -> None:
        self._run(self._disconnect())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(self._settings.timeout_s)
        if not self._thread.is_alive():
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _deliver(self, messages: Sequence[Message]) -> Sequence[Refused]:
        stream = (await self._connected()).jetstream(timeout=self._settings.timeout_s)
        refused: list[Refused] = []
        settled: set[int] = set()
        for wave in _waves(messages):
            self._ensure_mine()
            outcomes = await asyncio.gather(*(self._publish(stream, each) for each in wave), return_exceptions=True)
            failures: list[BaseException] = []
            for each, outcome in zip(wave, outcomes, strict=True):
                if isinstance(outcome, BaseException):
                    failures.append(outcome)
                    continue
                settled.add(each.position)
                if outcome is not None:
                    refused.append(Refused(each, outcome))
            if failures:
                reason = self._reason(failures[0])
                raise SinkFailed.after(reason, messages, settled=settled, refused=refused) from failures[0]
        return refused

    async def _publish(self, stream: JetStreamContext, message: Message) -> str | None:
        """None: stored; otherwise why it never will be."""
        headers = {Header.MSG_ID: str(message.id), "content-type": CONTENT_TYPE}
        subject = f"{self._settings.subject}.{message.type}"
        try:
            await stream.publish(subject, message.body, stream=self._settings.stream, headers=headers)
        except nats.errors.MaxPayloadError:
            return "The event is larger than the server's max_payload"
        except APIError as error:
            if error.err_code == _TOO_LARGE:
                return "The event is larger than the stream's maximum message size"
            raise
        return None

    async def _connected(self) -> Client:
        """Raises SinkFailed if no server can be reached, or the stream is not one that keeps events."""
        if self._client is not None and self._client.is_connected:
            return self._client
        await self._disconnect()
        failure: Exception = SinkFailed("no server is configured")
        for server in self._settings.servers:
            try:
                self._client = await self._connect(server)
            except Exception as error:  # noqa: BLE001 the client's failures have no common base
                failure = error
            else:
                await self._check(self._client)
                return self._client
        raise SinkFailed(self._reason(failure, server=server)) from failure

    async def _connect(self, server: str) -> Client:
        settings, client, secured = self._settings, Client(), server.startswith("tls://")

        def secret(value: str) -> str:
            # a server decides on TLS: one that does not ask for it must not read a secret
            if secured and not client._server_info.get("tls_required"):  # noqa: SLF001 no public name before the connection
                raise SinkFailed("The server does not use TLS, but its address begins with tls://")
            return value

        asked: dict[str, Any] = {}
        if settings.password is not None:
            password = settings.password.get_secret_value()
            asked |= {"user": settings.user, "password": lambda: secret(password)}
        if settings.token is not None:
            token = settings.token.get_secret_value()
            asked["token"] = lambda: secret(token)
        if settings.credentials_file is not None:
            settings.credentials_file.open().close()  # the client would not read it for a server without users
            asked["user_credentials"] = str(settings.credentials_file)
        connecting = client.connect(
            server,
            name="lakewarden",
            tls=_trust(settings) if secured else None,
            connect_timeout=settings.timeout_s,  # type: ignore[arg-type]  # any number of seconds
            allow_reconnect=False,  # the relay connects anew, and says why it has to
            error_cb=self._noted,
            **asked,
        )
        try:
            await asyncio.wait_for(connecting, settings.timeout_s * 2)
        except BaseException:
            await self._close(client)
            raise
        return client

    async def _check(self, client: Client) -> None:
        name = self._settings.stream
        try:
            found = await client.jetstream(timeout=self._settings.timeout_s).stream_info(name)
        except NotFoundError as error:
            raise SinkFailed(f"The stream {name!r} does not exist: create it first") from error
        except (TimeoutError, nats.errors.Error) as error:
            raise SinkFailed(self._reason(error)) from error
        if problem := _problem(found.config):
            raise SinkFailed(f"The stream {name!r} {problem}")

    async def _disconnect(self) -> None:
        client, self._client, self._trouble = self._client, None, None
        if client is not None:
            await self._close(client)

    async def _close(self, client: Client) -> None:
        with contextlib.suppress(Exception):  # it may never have been connected
            await asyncio.wait_for(client.close(), self._settings.timeout_s)

    async def _noted(self, error: Exception) -> None:
        self._trouble = error

    def _reason(self, error: BaseException, *, server: str = "") -> str:
        at = f" at {server}" if server else ""
        if isinstance(error, SinkFailed):
            return str(error)
        text = str(error) or type(error).__name__
        if "authorization violation" in text.lower() or "authentication" in text.lower():
            return f"The server{at} refused the user name, password, token or credentials"
        if isinstance(error, ssl.SSLError):
            return f"The TLS connection{at} failed: {text}"
        if isinstance(error, NoStreamResponseError):
            return (
                f"No stream takes subjects that begin with {self._settings.subject!r}: see that JetStream is on and "
                f"the stream {self._settings.stream!r} has the subject '{self._settings.subject}.>'"
            )
        if isinstance(error, APIError):
            return f"The stream {self._settings.stream!r} does not take events now: {error.description}"
        if isinstance(error, TimeoutError | asyncio.TimeoutError):
            said = f": {self._trouble}" if self._trouble else ""
            return f"The server{at} did not answer within {self._settings.timeout_s:g} s{said}"
        return f"The connection{at} failed: {text}"


def _waves(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Parts that are sent together: no object has two events in one.

    If an event failed and a later one of its object was stored, the stream would drop the later one as known when both
    are sent again, and keep the wrong order.
    """
    wave: list[Message] = []
    keys: set[str] = set()
    for each in messages:
        if each.key in keys or len(wave) == _AT_ONCE:
            yield wave
            wave, keys = [], set()
        wave.append(each)
        keys.add(each.key)
    if wave:
        yield wave


def _problem(stream: StreamConfig) -> str:
    """Why a stream cannot keep events; empty: it can."""
    if stream.storage != StorageType.FILE:
        return "keeps its messages in memory only: its storage must be 'file'"
    if stream.no_ack:
        return "does not acknowledge messages: its no_ack must be off"
    if stream.sealed:
        return "is sealed: it takes no messages"
    return ""


def _trust(settings: NatsSinkConfig) -> ssl.SSLContext:
    """Raises SinkFailed for files that cannot be read."""
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.certificate_file is not None:
            context.load_cert_chain(settings.certificate_file, settings.key_file)
    except OSError as error:
        raise SinkFailed(f"The certificates of the sink cannot be read: {error}") from error
    return context
