"""The authentication contract: every request's caller comes through here; chain.py fulfils it."""

from dataclasses import dataclass
from typing import Literal, Protocol

PrincipalKind = Literal["human", "application"]


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """What a verified token says about its bearer.

    `id` is `<provider id>~<subject>`, `kubernetes~<account>` for service accounts; `expires_at` is the token's
    `exp` in Unix seconds (of a token without: when it must be verified again). `name` and `email` are what the
    token says: descriptive, never a key and never unique. `token_roles` are the roles that it lists, a bounded number.
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

    def authenticate(self, authorization: str | None, *, source: str = "") -> VerifiedToken:
        """Return the caller behind a raw `Authorization` header (None: the request had none).

        `source` is the address that the request came from, for a fair share of what is scarce; empty: not known.

        May block on the network for a few seconds when the issuer must be asked: for its keys, or about the token.

        Raises:
            NotAuthorized: there are no credentials, or they are not valid; the sentence says what to do.
            Unavailable: the identity provider cannot be asked, and what is known does not suffice.

        """
        ...

    def find_known(self, authorization: str | None) -> VerifiedToken | None:
        """Return the caller when their credentials were verified before; never blocks, for async handlers.

        None means: call `authenticate`, in a thread.

        Raises:
            NotAuthorized: the header is not usable, or the credentials have expired.

        """
        ...
