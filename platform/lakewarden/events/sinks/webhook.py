"""Posts events to a webhook, signed, one request each."""

import base64
import hashlib
import hmac
import ipaddress
import socket
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from lakewarden.config import WebhookSinkConfig
from lakewarden.events.envelope import CONTENT_TYPE
from lakewarden.events.sinks.interface import EnsureMine, Message, Refused, SinkFailed

_NEVER: Final = {400, 406, 410, 413, 415, 422}
"""Statuses by which a receiver says that this event will never be accepted."""
_READ: Final = 64 * 1024  # bytes of an answer


class WebhookSink:
    """The headers follow Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`.

    The signature is `v1,` and the base64 of HMAC-SHA256 over `<id>.<timestamp>.<body>`.
    """

    def __init__(self, settings: WebhookSinkConfig, ensure_mine: EnsureMine) -> None:
        self._settings, self._ensure_mine = settings, ensure_mine
        self._parts = urlsplit(settings.url)
        self._pools = urllib3.PoolManager(
            num_pools=4,
            retries=False,
            timeout=urllib3.Timeout(connect=settings.timeout_s, read=settings.timeout_s),
            ca_certs=str(settings.ca_file) if settings.ca_file else None,
        )

    def deliver(self, messages: Sequence[Message]) -> Sequence[Refused]:
        refused: list[Refused] = []
        for done, each in enumerate(messages):
            self._ensure_mine()
            try:
                reason = self._posted(each)
            except SinkFailed as error:
                raise SinkFailed(str(error), done=done, refused=refused) from error
            if reason is not None:
                refused.append(Refused(each, reason))
        return refused

    def close(self) -> None:
        self._pools.clear()

    def _posted(self, message: Message) -> str | None:
        """None: accepted; otherwise why it never will be."""
        at = str(int(time.time()))
        headers = {
            "Content-Type": CONTENT_TYPE,
            "User-Agent": "lakewarden",
            "webhook-id": str(message.id),
            "webhook-timestamp": at,
            "webhook-signature": signature(self._settings.secret.get_secret_value(), message, at),
        }
        address = self._address()
        try:
            answer = self._request(address, message.body, headers)
        except HTTPError as error:
            raise SinkFailed(f"The webhook did not answer: {type(error).__name__}") from error
        if 200 <= answer.status < 300:  # noqa: PLR2004 HTTP
            return None
        reason = f"The webhook answered {answer.status}"
        if 300 <= answer.status < 400:  # noqa: PLR2004 HTTP
            raise SinkFailed(f"{reason}: redirects are not followed, set the final address")
        if answer.status in _NEVER:
            return reason
        raise SinkFailed(reason)

    def _request(self, address: str, body: bytes, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        """To exactly this address, so that a name that is looked up again cannot lead elsewhere."""
        secure = self._parts.scheme == "https"
        port = self._parts.port or (443 if secure else 80)
        host = self._parts.hostname or ""
        names = {"assert_hostname": host, "server_hostname": host} if secure else {}
        pool = self._pools.connection_from_host(address, port, self._parts.scheme, pool_kwargs=names)
        path = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
        headers = headers | {"Host": self._parts.netloc.rpartition("@")[2]}
        answer = pool.urlopen(
            "POST", path, body=body, headers=headers, redirect=False, retries=False, preload_content=False
        )
        try:
            answer.read(_READ)  # so that the connection can be used again
        finally:
            answer.release_conn()
        return answer

    def _address(self) -> str:
        """One of the host's addresses; SinkFailed for those inside, unless they are allowed."""
        host = self._parts.hostname or ""
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            raise SinkFailed(f"The webhook's host {host!r} is not known: {error}") from error
        addresses = [str(each[4][0]) for each in found]
        for each in addresses:
            if not (self._settings.allow_private_addresses or ipaddress.ip_address(each).is_global):
                raise SinkFailed(
                    f"The webhook's host {host!r} has the private address {each}: if it may be used, set the "
                    "sink's ...__WEBHOOK__ALLOW_PRIVATE_ADDRESSES to true"
                )
        return addresses[0]


def signature(secret: str, message: Message, at: str) -> str:
    signed = f"{message.id}.{at}.".encode() + message.body
    return "v1," + base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).decode()
