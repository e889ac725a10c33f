"""Calls the API server of a Kubernetes cluster, with this server's own service account; for kubernetes.py."""

from typing import Final

import msgspec

from lakewarden.authn.json_fetch import FetchFailed, JsonClient, JsonObject
from lakewarden.config import KubernetesConfig

_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_KEYS: Final = "/openid/v1/jwks"
_DISCOVERY: Final = "/.well-known/openid-configuration"


class Cluster:
    """The API server. Thread-safe. All methods that call it raise FetchFailed."""

    def __init__(self, settings: KubernetesConfig) -> None:
        self._address = settings.api_server.rstrip("/")
        self._token_file = settings.token_file
        self._audiences = settings.audience
        self._client = JsonClient(ca_file=settings.ca_file)

    @property
    def keys_address(self) -> str:
        """The fixed path of the service accounts' keys; the address in the discovery document may not be reachable."""
        return f"{self._address}{_KEYS}"

    def fetch(self, url: str) -> JsonObject:
        """GET a document of the API server."""
        return self._client.get(url, self._headers())

    def issuer(self) -> str:
        """The `iss` of the cluster's tokens, from its discovery document."""
        found = self.fetch(f"{self._address}{_DISCOVERY}").get("issuer")
        if not isinstance(found, str) or not found:
            raise FetchFailed(f"{self._address}{_DISCOVERY} does not name an issuer")
        return found

    def review(self, token: str) -> JsonObject:
        """Create a TokenReview (authentication.k8s.io/v1) and return its `status`."""
        spec: JsonObject = {"token": token}
        if self._audiences:
            spec["audiences"] = list(self._audiences)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        headers = self._headers() | {"Content-Type": "application/json"}
        answer = self._client.post(f"{self._address}{_REVIEWS}", msgspec.json.encode(review), headers)
        status = answer.get("status")
        if not isinstance(status, dict):
            raise FetchFailed(f"{self._address}{_REVIEWS} did not answer with a status")
        return status

    def own_token(self) -> str:
        """The token of this server, read from the file each time because the kubelet replaces it before it expires."""
        try:
            own = self._token_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it holds no token"
            raise FetchFailed(f"this server's own token cannot be read from {self._token_file}: {reason}") from error
        if not own.isprintable() or " " in own or not own:
            raise FetchFailed(f"{self._token_file} does not hold one token")
        return own

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.own_token()}"}
