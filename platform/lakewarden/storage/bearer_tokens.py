"""Tokens with which the server uses a cloud's services; each is kept while it lasts."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import urllib3

from lakewarden.storage.interface import StorageError, StorageSilent, StorageUnavailable
from lakewarden.storage.made_once import MadeOnce
from lakewarden.timed_connections import timed_pools

_MOST_BYTES = 64 * 1024
_CODE = re.compile(r"[\w.-]{1,64}")
_ENTRA_CODE = re.compile(r"AADSTS\d+")


@dataclass(frozen=True, slots=True)
class BearerToken:
    value: str = field(repr=False)
    expires_at: datetime


class BearerTokens:
    """The current token of one identity. Thread-safe: those who need a new one at the same time share one request.

    One that has not ended is used on if there is no new one now.
    """

    def __init__(self, fetch: Callable[[], BearerToken], *, margin: timedelta) -> None:
        """A token is replaced `margin` before its end, or at its half if it is shorter than twice that."""
        self._fetch = fetch
        self._margin = margin
        self._kept: MadeOnce[tuple[BearerToken, datetime]] = MadeOnce(1)

    def current(self) -> BearerToken:
        """Raises StorageError when the cloud does not issue one."""
        now = datetime.now(UTC)
        token, _ = self._kept.get(
            "", self._new, is_good=lambda kept: now < kept[1], is_of_use=lambda kept: now < kept[0].expires_at
        )
        return token

    def _new(self) -> tuple[BearerToken, datetime]:
        """With the time from which on it is to be replaced."""
        now, token = datetime.now(UTC), self._fetch()
        return token, token.expires_at - min(self._margin, (token.expires_at - now) / 2)


class TokenService:
    """A cloud's token service, named in messages by `name`. No message contains what was sent to it or came back."""

    def __init__(self, name: str, *, timeout_s: float) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._pool = timed_pools(num_pools=4, maxsize=4, retries=urllib3.Retry(1, read=0, status=0))

    def ask(
        self,
        method: str,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        lasts_s: int | None = None,
    ) -> BearerToken:
        """The token of an answer by RFC 6749 (section 5.1). Raises StorageError.

        `lasts_s` holds if the answer does not say how long it lasts.
        """
        asked_at = datetime.now(UTC)
        answer = self._answer(method, url, form, headers or {})
        token, seconds = answer.get("access_token"), answer.get("expires_in", lasts_s)
        if not isinstance(token, str) or not str(seconds).isdecimal():
            raise StorageError(f"{self._name} answered without a token and its duration")
        return BearerToken(token, asked_at + timedelta(seconds=int(str(seconds))))

    def _answer(
        self, method: str, url: str, form: Mapping[str, str] | None, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        body = urlencode(form) if form is not None else None
        sent = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        try:
            answer = self._pool.request(
                method,
                url,
                body=body,
                headers={**sent, **headers},
                timeout=self._timeout_s,
                redirect=False,
                preload_content=False,
            )
            with answer:
                content = answer.read(_MOST_BYTES)
        except urllib3.exceptions.HTTPError as error:
            raise StorageSilent(f"{self._name} cannot be reached: {failure(error)}") from None
        said = _object(content)
        if answer.status != 200:  # noqa: PLR2004 the only success of RFC 6749
            raise refused(
                answer.status, f"{self._name} refused the request for a token: {answer.status}{_reason(said)}"
            )
        return said


def failure(error: urllib3.exceptions.HTTPError) -> str:
    """The kind of a failure: its message may contain the address, and that a part of a request."""
    if isinstance(error, urllib3.exceptions.MaxRetryError) and error.reason is not None:
        return type(error.reason).__name__
    return type(error).__name__


def refused(status: int, message: str) -> StorageError:
    """The error of an answer that is not a success: some pass by themselves."""
    passes = status in {408, 429} or status >= 500  # noqa: PLR2004 HTTP's
    return StorageUnavailable(message) if passes else StorageError(message)


def _object(content: bytes) -> dict[str, Any]:
    try:
        said = json.loads(content)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _reason(said: Mapping[str, Any]) -> str:
    """The codes of an error by RFC 6749 (section 5.2): its text could repeat what was sent."""
    codes = (
        _CODE.findall(str(said.get("error", "")))[:1] + _ENTRA_CODE.findall(str(said.get("error_description", "")))[:1]
    )
    return "".join(f", {code}" for code in codes)
