"""Who sends: verified once, found again for each message, so an expired or refused token ends the connection."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from lakewarden import backends, config
from lakewarden.authn.interface import VerifiedToken
from lakewarden.context import CallerKey, PrincipalId, RequestContext
from lakewarden.hot.fair_threads import FairThreads
from lakewarden.http.request import assumed_role, clean_request_id, context_of
from lakewarden.ids import new_id_text

_settings = config.current().server
_THREADS: Final = FairThreads(
    "ingest verification",
    threads=min(2, _settings.verification_threads),
    queue=_settings.queue,
    percent=_settings.caller_share_percent,
    patience_s=_settings.queue_timeout_s,
)
_SUBPROTOCOL: Final = "bearer"


@dataclass(frozen=True, slots=True)
class Sender:
    """`headers` are those of the request or the handshake, `address` is as coarse as one sender can choose it."""

    authorization: str | None
    headers: Mapping[bytes, bytes]
    address: str

    async def verified(self) -> VerifiedToken:
        """Raises NotAuthorized; Unavailable when the token cannot be verified now."""
        known = backends.authenticator().find_known(self.authorization)
        if known is not None:
            return known
        verify = partial(backends.authenticator().authenticate, self.authorization, source=self.address)
        return await _THREADS.run(f"address {self.address}", verify)

    async def context(self) -> RequestContext:
        """For one decision, with a trail of its own. Raises as `verified`, and BadRequest for a wrong header."""
        return context_of(await self.verified(), self.header, self.request_id())

    def key_of(self, token: VerifiedToken) -> CallerKey:
        """What decides on their rights. Raises BadRequest for a wrong header."""
        return (PrincipalId(token.id), token.token_roles, assumed_role(self.header("x-assume-role")))

    def header(self, name: str) -> str | None:
        value = self.headers.get(name.encode())
        return None if value is None else value.decode("latin-1")

    def request_id(self) -> str:
        given = self.header("x-request-id")
        return new_id_text() if given is None else clean_request_id(given)


def authorization(headers: Mapping[bytes, bytes], offered: list[str]) -> tuple[str | None, str | None]:
    """The header, and the subprotocol that was chosen.

    A browser cannot set headers of a socket: it offers the subprotocols `bearer` and its token. A token in the query
    would be written to logs, and is ignored.
    """
    sent = headers.get(b"authorization")
    if sent is not None:
        return sent.decode("latin-1"), None
    if len(offered) == 2 and offered[0].lower() == _SUBPROTOCOL:  # noqa: PLR2004 the name and the token
        return f"Bearer {offered[1]}", offered[0]
    return None, None
