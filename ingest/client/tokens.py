"""Access tokens for the gateway: OAuth2 client credentials (RFC 6749, section 4.4), or one that the caller has."""

import json
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol
from urllib.parse import urlencode

import urllib3

from ingest.client.errors import ConnectionLost
from lakewarden.errors import NotAuthorized

TIMEOUT_S = 10.0
_EARLY_S = 30.0
"""A token is replaced this long before it expires."""


class TokenSource(Protocol):
    def token(self) -> str:
        """A valid token. Raises `NotAuthorized`, or `ConnectionLost` if none can be requested now."""
        ...

    def forget(self) -> bool:
        """Called when the gateway refused the token; returns whether the next one may be another."""
        ...


@dataclass(frozen=True, slots=True)
class FixedToken:
    value: str = field(repr=False)

    def token(self) -> str:
        return self.value

    def forget(self) -> bool:
        return False


@dataclass(slots=True)
class ClientCredentials:
    """Requests a token when one is needed, and keeps it until shortly before it expires."""

    token_endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = "catalog"
    _token: str | None = field(default=None, init=False, repr=False)
    _expires: float = field(default=0.0, init=False)

    def token(self) -> str:
        if self._token is None or time.monotonic() > self._expires - _EARLY_S:
            self._token, lifetime = self._request()
            self._expires = time.monotonic() + lifetime
        return self._token

    def forget(self) -> bool:
        self._token = None
        return True

    def _request(self) -> tuple[str, float]:
        form = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.client_secret}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        content = urlencode({**form, "scope": self.scope})
        try:
            with urllib3.PoolManager(timeout=TIMEOUT_S, retries=False) as http:
                answer = http.request("POST", self.token_endpoint, headers=headers, body=content, redirect=False)
            body = json.loads(answer.data)
        except urllib3.exceptions.HTTPError as error:
            raise ConnectionLost(f"the token endpoint {self.token_endpoint} does not answer") from error
        except ValueError:
            body = {}
        if not isinstance(body, dict):
            body = {}
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise ConnectionLost(f"the token endpoint {self.token_endpoint} answered {answer.status}")
        token, lifetime = body.get("access_token"), body.get("expires_in", 300)
        if answer.status != HTTPStatus.OK or not isinstance(token, str):
            said = str(body.get("error_description") or body.get("error") or "no reason given").rstrip(".")
            raise NotAuthorized(
                f"The token endpoint {self.token_endpoint} answered {answer.status} to client {self.client_id!r}: "
                f"{said}. Check the client's id, secret and scope ({self.scope!r})."
            )
        return token, float(lifetime) if isinstance(lifetime, int | float) else 300.0
