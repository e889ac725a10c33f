"""The contract of request signing: engines without keys send requests to a store that the server has signed."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.places import is_in


class SignRequest(msgspec.Struct, frozen=True):
    """What an engine wants to be signed (spec: RemoteSignRequest)."""

    region: str
    method: str
    uri: str
    headers: Mapping[str, Sequence[str]]
    body: str | None = None


class Reach(msgspec.Struct, frozen=True):
    """What a request reaches, and the level that it needs there: everything that begins with one of `locations`.

    `content` is the signer's own.
    """

    level: AccessLevel
    locations: Sequence[str]
    content: Any

    def is_inside(self, place: str) -> bool:
        """Whether it reaches nothing outside of the folder at `place`."""
        return all(is_in(each, place) for each in self.locations)


class SignedRequest(msgspec.Struct, frozen=True):
    """`headers` are to be added to those of the request. It is valid for some minutes."""

    uri: str
    headers: Mapping[str, str]


class RequestSigner(Protocol):
    """Signs requests to the store of one warehouse, with the warehouse's own keys."""

    def read(self, request: SignRequest) -> Reach:
        """Raises BadRequest, Forbidden or MethodNotAllowed for a request that is signed for nobody."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether `sign` will not wait for anything."""
        ...

    def sign(self, reach: Reach) -> SignedRequest:
        """Sign what `read` returned, for a caller who may do that. Raises StorageUnavailable if there are no keys."""
        ...
