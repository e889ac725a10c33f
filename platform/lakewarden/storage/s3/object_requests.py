"""Requests to single objects of S3, signed by the server's keys."""

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from lakewarden.config import StorageConfig
from lakewarden.storage.object_faults import CODE, Fault, region_in
from lakewarden.storage.object_requests import Answer, ObjectRequests, Outgoing, Proof
from lakewarden.storage.s3.sigv4 import CanonicalRequest, Signer, SigningKeys

if TYPE_CHECKING:
    from lakewarden.storage.s3.profile import S3Profile
    from lakewarden.storage.s3.server_keys import ServerKeys

_NO_BODY: Final = sha256().hexdigest()
_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}


def s3_requests(profile: "S3Profile", address: str, keys: "ServerKeys", settings: StorageConfig) -> ObjectRequests:
    """For requests without query to the objects at `address`, that of the bucket."""
    # S3 signs the path as it is sent, slashes included
    proof = _Proof(_host(address), profile.region, keys)
    return ObjectRequests(address, authorize=proof.of, fault_of=_fault_of, settings=settings, safe="/")


class _Proof:
    def __init__(self, host: str, region: str, keys: "ServerKeys") -> None:
        self._host, self._region, self._keys = host, region, keys
        self._signer: tuple[SigningKeys, Signer] | None = None

    def of(self, request: Outgoing) -> Proof:
        keys, signer = self._keys.for_signing(), self._signer
        if signer is None or signer[0] != keys:
            signer = self._signer = (keys, Signer(keys, self._region))
        payload = _NO_BODY if request.body is None else sha256(request.body).hexdigest()
        headers = {name: value for name, value in request.headers.items() if name.startswith("x-amz-")}
        canonical = CanonicalRequest(request.method, self._host, request.path, "", headers, payload)
        return {}, signer[1].sign(canonical)


def _host(address: str) -> str:
    """As a client sends it: without the port that is the scheme's."""
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return host if parts.port in {None, _PORTS[parts.scheme]} else f"{host}:{parts.port}"


def _fault_of(answer: Answer) -> Fault:
    text = answer.data[:65536].decode(errors="replace")
    code = CODE.search(text)
    return Fault(answer.status, code[1] if code else None, region_in(text))
