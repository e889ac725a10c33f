"""An authenticator for in-process tests: the token `alice` is the person `oidc~alice`, no cryptography involved.

`alice+analysts,engineers` is alice, to whom her identity provider gives these roles.
"""

from lakewarden.authn.interface import VerifiedToken
from lakewarden.errors import NotAuthorized, Unavailable


class StubAuthenticator:
    """`engine…` tokens are applications, all others people; `expired` and `unavailable` fail as their names say."""

    def authenticate(self, authorization: str | None, *, source: str = "") -> VerifiedToken:  # noqa: ARG002 the contract's
        scheme, _, token = (authorization or "").partition(" ")
        if scheme != "Bearer" or not token or token == "expired":
            raise NotAuthorized("Send 'Authorization: Bearer <access token>'")
        if token == "unavailable":
            raise Unavailable("The identity provider cannot be reached")
        token, _, roles = token.partition("+")
        return VerifiedToken(
            id=f"oidc~{token}",
            name=token.title(),
            email=f"{token}@example.org",
            kind="application" if token.startswith("engine") else "human",
            issuer="https://issuer.test",
            expires_at=4e9,
            token_roles=tuple(roles.split(",")) if roles else (),
        )

    def find_known(self, authorization: str | None) -> VerifiedToken | None:
        return self.authenticate(authorization)

    def mark_of(self, authorization: str) -> bytes:
        return authorization.encode()

    def find_marked(self, mark: bytes) -> VerifiedToken | None:
        try:
            return self.authenticate(mark.decode())
        except (NotAuthorized, Unavailable):
            return None
