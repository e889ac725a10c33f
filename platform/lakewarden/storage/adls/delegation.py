"""The keys with which an identity signs shared access signatures."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import urllib3

from lakewarden.storage.adls.sas import VERSION, DelegationKey, instant
from lakewarden.storage.bearer_tokens import BearerTokens, failure, refused
from lakewarden.storage.interface import StorageError, StorageSilent
from lakewarden.storage.made_once import MadeOnce
from lakewarden.timed_connections import timed_pools

LONGEST: Final = timedelta(days=7)
"""What the service allows, for keys as for signatures."""

_LEAST_LEFT: Final = timedelta(minutes=1)
_MOST_BYTES = 64 * 1024
_FIELD = re.compile(rb"<(\w+)>([^<>]*)</\1>")
_CODE = re.compile(r"\w{1,64}")


class DelegationKeys:
    """The current key of an identity in one account; it is replaced at half of its life. Thread-safe."""

    def __init__(
        self, tokens: BearerTokens, *, endpoint: str, validity: timedelta, skew: timedelta, timeout_s: float
    ) -> None:
        """A key lasts twice as long as the signatures, as far as the service allows it."""
        self._tokens = tokens
        self._endpoint = endpoint
        self._life = min(2 * validity, LONGEST - skew)
        self._skew = skew
        self._timeout_s = timeout_s
        self._pool = timed_pools(num_pools=1, maxsize=1, retries=urllib3.Retry(1, read=0, status=0))
        self._kept: MadeOnce[tuple[DelegationKey, datetime]] = MadeOnce(1)

    def current(self) -> tuple[DelegationKey, datetime]:
        """A key and its end. Raises StorageError when the account does not issue one."""
        now = datetime.now(UTC)

        def new() -> tuple[DelegationKey, datetime]:
            expiry = (now + self._life).replace(microsecond=0)
            return self._fetch(now - self._skew, expiry), expiry

        return self._kept.get(
            "",
            new,
            is_good=lambda kept: now < kept[1] - self._life / 2,
            is_of_use=lambda kept: now + _LEAST_LEFT < kept[1],
        )

    def _fetch(self, start: datetime, expiry: datetime) -> DelegationKey:
        body = f"<KeyInfo><Start>{instant(start)}</Start><Expiry>{instant(expiry)}</Expiry></KeyInfo>"
        headers = {
            "Authorization": f"Bearer {self._tokens.current().value}",
            "Content-Type": "application/xml",
            "x-ms-version": VERSION,
        }
        address = f"{self._endpoint}/?restype=service&comp=userdelegationkey"
        try:
            answer = self._pool.request(
                "POST",
                address,
                body=body,
                headers=headers,
                timeout=self._timeout_s,
                redirect=False,
                preload_content=False,
            )
            with answer:
                content = answer.read(_MOST_BYTES)
        except urllib3.exceptions.HTTPError as error:
            raise StorageSilent(f"The storage account cannot be reached: {failure(error)}") from None
        if answer.status != 200:  # noqa: PLR2004
            code = _CODE.match(answer.headers.get("x-ms-error-code", "no code"))
            raise refused(
                answer.status,
                f"The storage account did not issue a user delegation key ({answer.status}, {code and code[0]}): "
                "the identity needs the role Storage Blob Delegator",
            )
        return _key(content)


def _key(content: bytes) -> DelegationKey:
    said = {name.decode(): value.decode() for name, value in _FIELD.findall(content)}
    try:
        return DelegationKey(
            object_id=said["SignedOid"],
            tenant_id=said["SignedTid"],
            start=said["SignedStart"],
            expiry=said["SignedExpiry"],
            service=said["SignedService"],
            version=said["SignedVersion"],
            value=said["Value"],
        )
    except KeyError as error:
        raise StorageError(f"The user delegation key of the storage account lacks {error}") from None
