"""The introspection endpoint of one provider (RFC 7662), asked as a confidential client; for remote_verification.py."""

from base64 import b64encode
from urllib.parse import quote, urlencode

from lakewarden.authn.discovery import discovered_address
from lakewarden.authn.json_fetch import FetchFailed, FetchJson, JsonObject, PostJson
from lakewarden.authn.provider import Introspection, OidcProvider


class IntrospectionEndpoint:
    """Asks about one token at a time. Thread-safe."""

    def __init__(
        self, provider: OidcProvider, introspection: Introspection, *, fetch: FetchJson, post: PostJson
    ) -> None:
        self._provider = provider
        self._fetch = fetch
        self._post = post
        self._configured = introspection.uri
        self._discovered: str | None = None
        self._headers = {
            "Authorization": _basic(introspection.client_id, introspection.client_secret),
            "Content-Type": "application/x-www-form-urlencoded",
        }

    def ask(self, token: str) -> JsonObject | None:
        """Return what the provider says about an active token (section 2.2), None for any other.

        Raises:
            FetchFailed: it does not answer, or not as RFC 7662 says.

        """
        form = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        address = self.address()
        try:
            answer = self._post(address, form, self._headers)
        except FetchFailed:
            self._discovered = None  # it may have moved
            raise
        active = answer.get("active")
        if not isinstance(active, bool):
            raise FetchFailed(f"{address} does not answer as RFC 7662 says: 'active' is missing")
        if not active:
            return None
        return {name: value for name, value in answer.items() if value is not None and name != "active"}

    def address(self) -> str:
        """Where to ask: configured, or found by discovery and kept until it fails. Raises FetchFailed."""
        if self._configured is not None:
            return self._configured
        address = self._discovered or discovered_address(self._provider, "introspection_endpoint", fetch=self._fetch)
        self._discovered = address
        return address


def _basic(client_id: str, client_secret: str) -> str:
    """RFC 6749 section 2.3.1: both are encoded as in a form before they are joined."""
    pair = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
    return f"Basic {b64encode(pair.encode()).decode()}"
