"""The routes at which engines without keys let their requests to S3 be signed (spec: signRequest)."""

import msgspec
from django.http import HttpResponse

from catalog import signing_access
from catalog.identifiers import TabularIdentifier
from catalog.services import request_signing
from catalog.signing_access import SigningPlace
from lakewarden.errors import BadRequest
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_bytes
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.request_signing import Reach, SignedRequest, SignRequest

_READS = frozenset({"GET", "HEAD"})
_ENCODER = msgspec.json.Encoder()


class RemoteSignRequest(msgspec.Struct):
    """The specification's; `properties` are ignored, because this server asks clients for none."""

    region: str
    uri: str
    method: str
    headers: dict[str, list[str]]
    body: str | None = None
    provider: str | None = None

    @property
    def level(self) -> AccessLevel:
        """What the caller must be allowed at least."""
        return AccessLevel.READ if self.method in _READS else AccessLevel.WRITE

    @property
    def content(self) -> SignRequest:
        return SignRequest(self.region, self.method, self.uri, self.headers, self.body)


class RemoteSignResult(msgspec.Struct):
    uri: str
    headers: dict[str, list[str]]


class TableSignEndpoint(Endpoint):
    def post(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        asked = _asked(request)
        ref = TabularIdentifier.parse(prefix, namespace, table)
        return _signed_in(signing_access.of_table(request.context, ref, level=asked.level), asked)


class TableIdSignEndpoint(Endpoint):
    """A request outside of the table is signed for the table that it reaches.

    PyIceberg up to 0.9.1 asks the signer of the table that it has loaded first for all others. A hidden table is
    treated like one that does not exist.
    """

    def post(self, request: ApiRequest, *, prefix: str, table_id: str) -> HttpResponse:
        asked = _asked(request)
        place = signing_access.of_id(request.context, prefix, table_id, level=asked.level)
        if place is not None:
            signer = request_signing.signer_of(place.warehouse)
            reach = signer.read(asked.content)
            if reach.is_inside(place.location):
                return rendered(asked.method, request_signing.sign(place, signer, reach))
        return _signed_by_location(request, prefix, asked)


class WarehouseSignEndpoint(Endpoint):
    """Signs for the table that the request reaches."""

    def post(self, request: ApiRequest, *, prefix: str) -> HttpResponse:
        return _signed_by_location(request, prefix, _asked(request))


def rendered(method: str, signed: SignedRequest) -> HttpResponse:
    response = json_bytes(encoded(signed))
    response["Cache-Control"] = cache_control(method)
    return response


def encoded(signed: SignedRequest) -> bytes:
    return _ENCODER.encode(RemoteSignResult(signed.uri, {name: [value] for name, value in signed.headers.items()}))


def cache_control(method: str) -> str:
    """Engines use what is `private` once more, for the next read of the same file."""
    return "private" if method in _READS else "no-cache"


def _asked(request: ApiRequest) -> RemoteSignRequest:
    asked = request.decode(RemoteSignRequest)
    if asked.provider not in {None, "s3"}:
        raise BadRequest(f"provider: {str(asked.provider)[:80]!r} is not supported: only requests to s3 are signed")
    return asked


def _signed_in(place: SigningPlace, asked: RemoteSignRequest) -> HttpResponse:
    signer = request_signing.signer_of(place.warehouse)
    return rendered(asked.method, request_signing.sign(place, signer, signer.read(asked.content)))


def _signed_by_location(request: ApiRequest, prefix: str, asked: RemoteSignRequest) -> HttpResponse:
    warehouse = signing_access.warehouse(request.context, prefix)
    signer = request_signing.signer_of(warehouse)
    reach: Reach = signer.read(asked.content)
    place = signing_access.at(request.context, warehouse, reach.locations[0], level=asked.level)
    return rendered(asked.method, request_signing.sign(place, signer, reach))
