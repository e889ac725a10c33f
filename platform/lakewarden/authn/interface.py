"""The authentication contract: every request's caller comes through here. Backends: oidc.py."""

from dataclasses import dataclass
from typing import Literal, Protocol

PrincipalKind = Literal["human", "application"]


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller whose token was verified.

    `id` is `<provider id>~<subject>`; `expires_at` is the token's `exp` in Unix seconds.
    `name` and `email` are what the token says: descriptive, never a key and never unique.
    """

    id: str
    name: str | None
    email: str | None
    kind: PrincipalKind
    issuer: str
    expires_at: float
    token_roles: tuple[str, ...] = ()


class Authenticator(Protocol):
    """Verifies credentials. Safe to call from any thread."""

    def authenticate(self, authorization: str | None) -> Principal:
        """Return the caller behind a raw `Authorization` header (None: the request had none).

        May block on the network for a few seconds when the issuer's keys are not known yet.

        Raises:
            NotAuthorized: there are no credentials, or they are not valid; the sentence says what to do.
            Unavailable: the identity provider cannot be reached and the needed key is not known.

        """
        ...

    def find_known(self, authorization: str | None) -> Principal | None:
        """Return the caller when his credentials were verified before; never blocks, for async handlers.

        None means: call `authenticate`, in a thread.

        Raises:
            NotAuthorized: the header is not usable, or the credentials have expired.

        """
        ...
