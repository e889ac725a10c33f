"""Posts signed requests to addresses that an operator configured: to webhooks, and to verifiers of data contracts."""

import base64
import hashlib
import hmac
import ipaddress
import socket
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, SSLError

from lakewarden.timed_connections import timed_pools


class PostFailed(Exception):
    """The receiver was not reached or did not answer. The message says why, and contains no secret."""


class Reply(NamedTuple):
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Receiver:
    """`what` names it in messages, such as `webhook`; `setting` is the one that allows private addresses."""

    what: str
    url: str
    secret: str
    timeout_s: float
    ca_file: Path | None
    allow_private_addresses: bool
    setting: str
    most: int = 64 * 1024
    """Bytes of an answer that are read."""


class SignedPosts:
    """The headers follow Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`.

    The signature is `v1,` and the base64 of HMAC-SHA256 over `<id>.<timestamp>.<body>`.
    """

    def __init__(self, receiver: Receiver, *, connections: int = 4) -> None:
        self._to = receiver
        self._parts = urlsplit(receiver.url)
        self._pools = timed_pools(
            num_pools=4,
            maxsize=connections,
            retries=False,
            timeout=urllib3.Timeout(connect=receiver.timeout_s, read=receiver.timeout_s),
            ca_certs=str(receiver.ca_file) if receiver.ca_file else None,
        )

    def post(self, identifier: str, body: bytes, *, content_type: str) -> Reply:
        """Redirects are not followed. Raises PostFailed."""
        at = str(int(time.time()))
        headers = {
            "Content-Type": content_type,
            "User-Agent": "lakewarden",
            "webhook-id": identifier,
            "webhook-timestamp": at,
            "webhook-signature": signature(self._to.secret, identifier, body, at),
        }
        address = self._address()
        try:
            return self._request(address, body, headers)
        except SSLError as error:
            raise PostFailed(f"The TLS connection to the {self._to.what} failed: {_reason(error)}") from error
        except HTTPError as error:
            raise PostFailed(f"The {self._to.what} did not answer: {type(error).__name__}") from error

    def close(self) -> None:
        self._pools.clear()

    def _request(self, address: str, body: bytes, headers: dict[str, str]) -> Reply:
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
            return Reply(answer.status, answer.read(self._to.most))  # read, so that the connection can be used again
        finally:
            answer.release_conn()

    def _address(self) -> str:
        """One of the host's addresses; PostFailed for those inside, unless they are allowed."""
        host, what = self._parts.hostname or "", self._to.what
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            raise PostFailed(f"The {what}'s host {host!r} is not known: {error}") from error
        addresses = [str(each[4][0]) for each in found]
        for each in addresses:
            if not (self._to.allow_private_addresses or ipaddress.ip_address(each).is_global):
                raise PostFailed(
                    f"The {what}'s host {host!r} has the private address {each}: if it may be used, set "
                    f"{self._to.setting} to true"
                )
        return addresses[0]


def _reason(error: SSLError) -> str:
    """Such as `certificate verify failed: certificate has expired`."""
    cause = error.args[0] if error.args else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {cause.verify_message}"
    return str(cause)[:200]


def signature(secret: str, identifier: str, body: bytes, at: str) -> str:
    signed = f"{identifier}.{at}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).decode()
