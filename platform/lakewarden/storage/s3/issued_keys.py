"""The keys that an engine has received, to try what they can do."""

from dataclasses import dataclass, field
from typing import Self

from lakewarden.storage.client_access import ClientAccess


@dataclass(frozen=True, slots=True)
class IssuedKeys:
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(repr=False)

    @classmethod
    def of(cls, access: ClientAccess) -> Self:
        found = access.credentials
        return cls(found["s3.access-key-id"], found["s3.secret-access-key"], found.get("s3.session-token"))
