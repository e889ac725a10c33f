"""The interface of authenticators; chain.py implements it."""

from dataclasses import dataclass
from typing import Literal, Protocol

PrincipalKind = Literal["human", "application"]


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """What a verified token says about its bearer.

    `id` is `<provider id>~<subject>`, or `kubernetes~<account>` for service accounts. `expires_at` is the token's `exp`
    in Unix seconds; for a token without one, when it must be verified again. `name` and `email` are only descriptive:
    they need not be unique and must not be used as keys. `token_roles` are the roles in the token, at most `max_roles`.
    """

    id: str
    name: str | None
    email: str | None
    kind: PrincipalKind
    issuer: str
    expires_at: float
    token_roles: tuple[str, ...] = ()


class Authenticator(Protocol):
    """Verifies credentials. Thread-safe."""

    def authenticate(self, authorization: str | None, *, source: str = "") -> VerifiedToken:
        """Verify a raw `Authorization` header (None: the request had none).

        `source` is the client's address, whose share of verifications is limited; empty: not known.

        May wait for the network for a few seconds, if keys must be fetched or the issuer must be asked about the token.

        Raises:
            NotAuthorized: there are no credentials, or they are not valid; the message says what to do.
            Unavailable: the identity provider must be asked and does not answer.

        """
        ...

    def find_known(self, authorization: str | None) -> VerifiedToken | None:
        """Return the token if it was verified before; never blocks, so async handlers may call it.

        None means that `authenticate` must be called, in a thread.

        Raises:
            NotAuthorized: the header is not valid, or the token has expired.

        """
        ...

    def mark_of(self, authorization: str) -> bytes:
        """Return what `find_marked` finds a known token by, without being the token. Raises NotAuthorized."""
        ...

    def find_marked(self, mark: bytes) -> VerifiedToken | None:
        """Return as `find_known`; None also for a token that is due to be verified again, or is not valid any more."""
        ...
