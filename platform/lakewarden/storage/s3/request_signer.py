"""Signs requests to S3 for engines that have no keys: by the rules of the bucket, with the keys of the warehouse."""

from math import inf
from time import time

from lakewarden.errors import BadRequest
from lakewarden.storage.request_signing import Reach, SignedRequest, SignRequest
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.server_keys import LOOK_AGAIN, ServerKeys
from lakewarden.storage.s3.signing_headers import Bounds
from lakewarden.storage.s3.signing_hosts import Hosts
from lakewarden.storage.s3.signing_rules import Signable, SigningRules
from lakewarden.storage.s3.sigv4 import Signer
from lakewarden.storage.token_services import token_service


class S3RequestSigner:
    """Keys that change are looked at again after some seconds, by a request that may wait for them."""

    def __init__(self, profile: S3Profile, keys: ServerKeys, bounds: Bounds | None = None) -> None:
        self._region = profile.region
        self._base = f"s3://{profile.bucket}/"
        self._rules = SigningRules(profile.bucket, Hosts(profile), is_aws=profile.is_of_aws, bounds=bounds or Bounds())
        self._keys = keys
        self._service = profile.sts_url
        self._current: tuple[Signer, float] | None = None

    def read(self, request: SignRequest) -> Reach:
        if request.region != self._region:
            raise BadRequest(f"The region is {request.region[:80]!r}, but the bucket is in {self._region!r}")
        found = self._rules.read(request)
        return Reach(found.level, [self._base + key for key in found.keys], found)

    @property
    def is_ready(self) -> bool:
        return self._current is not None and time() < self._current[1]

    def sign(self, reach: Reach) -> SignedRequest:
        current = self._current
        if current is None or time() >= current[1]:
            current = self._current = self._renewed()
        signable: Signable = reach.content
        return SignedRequest(signable.uri, {**signable.guards, **current[0].sign(signable.canonical)})

    def _renewed(self) -> tuple[Signer, float]:
        if self._keys.are_fixed:
            return Signer(self._keys.for_signing(), self._region), inf
        until, service = time() + LOOK_AGAIN.total_seconds(), token_service(self._service)
        with service.waiting(), service.asking():
            return Signer(self._keys.for_signing(), self._region), until
