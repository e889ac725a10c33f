"""Finds out who asks before much is done for them: by a known token at once, by another one in threads of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from lakewarden import backends
from lakewarden.errors import NotAuthorized
from lakewarden.hot.fair_threads import FairThreads


@dataclass(frozen=True, slots=True)
class IdentifiedCaller:
    """`key` names who shares the server's means with others: a principal, else an address.

    `refusal` says why it is not a principal.
    """

    key: str
    refusal: NotAuthorized | None = None


class CallerIdentification:
    """`threads` verify tokens that are not known: whoever sends bogus ones takes none of the requests' threads."""

    def __init__(self, threads: FairThreads) -> None:
        self._threads = threads

    def known(self, headers: Mapping[bytes, bytes], address: str) -> IdentifiedCaller | None:
        """Who asks, if that can be said at once. Never blocks."""
        authorization = headers.get(b"authorization")
        try:
            principal = backends.authenticator().find_known(
                None if authorization is None else authorization.decode("latin-1")
            )
        except NotAuthorized as error:
            return IdentifiedCaller(f"address {address}", error)
        return None if principal is None else IdentifiedCaller(principal.id)

    async def identify(self, headers: Mapping[bytes, bytes], address: str) -> IdentifiedCaller:
        """Who asks. Raises Unavailable when their token cannot be verified now."""
        known = self.known(headers, address)
        if known is not None:
            return known
        authorization = headers[b"authorization"].decode("latin-1")
        place = f"address {address}"
        verify = partial(backends.authenticator().authenticate, authorization, source=address)
        try:
            principal = await self._threads.run(place, verify)
        except NotAuthorized as error:
            return IdentifiedCaller(place, error)
        return IdentifiedCaller(principal.id)
