"""The keys with which a server signs, and the signatures of version 4 of AWS made with them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from hmac import HMAC, digest
from hmac import new as keyed
from time import time
from typing import Final

import msgspec

UNSIGNED: Final = "UNSIGNED-PAYLOAD"


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """`session_token` belongs to temporary keys."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


class CanonicalRequest(msgspec.Struct, frozen=True):
    """A request as Signature Version 4 writes it.

    `path` and `query` are percent-encoded once, the query sorted by name; `headers` are those to sign, with names in
    lower case, without `host`. `payload` is the hash of the body in hexadecimal digits, or a word such as UNSIGNED.
    """

    method: str
    host: str
    path: str
    query: str
    headers: dict[str, str]
    payload: str


class _Day(msgspec.Struct, frozen=True):
    """What all signatures of a day have in common; `hashed` has begun with the key of the day, and is continued."""

    name: str
    scope: str
    authorization: str
    hashed: HMAC


class Signer:
    """Signs for S3 in one region."""

    __slots__ = ("_keys", "_of_day", "_region")

    def __init__(self, keys: SigningKeys, region: str) -> None:
        self._keys = keys
        self._region = region
        self._of_day = self._day("")

    def sign(self, request: CanonicalRequest, *, at: int | None = None) -> dict[str, str]:
        """The headers to add to the request, which is valid for some minutes; `at` is in seconds since 1970."""
        keys, method = self._keys, request.method
        day, instant = _written(int(time()) if at is None else at)
        added = {"x-amz-content-sha256": request.payload, "x-amz-date": instant}
        if keys.session_token is not None:
            added["x-amz-security-token"] = keys.session_token
        if request.headers:
            headers = {**request.headers, "host": request.host, **added}
            names = sorted(headers)
            lines = "\n".join([f"{name}:{headers[name]}" for name in names])
            signed = ";".join(names)
        else:  # most reads: in order as they are
            lines = f"host:{request.host}\nx-amz-content-sha256:{request.payload}\nx-amz-date:{instant}"
            signed = "host;x-amz-content-sha256;x-amz-date"
            if keys.session_token is not None:
                lines, signed = f"{lines}\nx-amz-security-token:{keys.session_token}", f"{signed};x-amz-security-token"
        canonical = f"{method}\n{request.path}\n{request.query}\n{lines}\n\n{signed}\n{request.payload}"
        if (of_day := self._of_day).name != day:
            of_day = self._of_day = self._day(day)
        hashed = of_day.hashed.copy()
        text = f"AWS4-HMAC-SHA256\n{instant}\n{of_day.scope}\n{sha256(canonical.encode()).hexdigest()}"
        hashed.update(text.encode())
        added["authorization"] = f"{of_day.authorization}{signed}, Signature={hashed.hexdigest()}"
        return added

    def _day(self, name: str) -> _Day:
        key = f"AWS4{self._keys.secret_access_key}".encode()
        for part in (name, self._region, "s3", "aws4_request"):
            key = digest(key, part.encode(), "sha256")
        scope = f"{name}/{self._region}/s3/aws4_request"
        authorization = f"AWS4-HMAC-SHA256 Credential={self._keys.access_key_id}/{scope}, SignedHeaders="
        return _Day(name, scope, authorization, keyed(key, digestmod="sha256"))


@lru_cache(maxsize=4)
def _written(at: int) -> tuple[str, str]:
    """The day and the second, as Signature Version 4 writes them."""
    instant = datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")
    return instant[:8], instant
