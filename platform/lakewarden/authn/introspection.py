"""The client of a provider's introspection endpoint (RFC 7662); for remote_verification.py."""

from base64 import b64encode
from urllib.parse import quote, urlencode

from lakewarden.authn.discovery import discovered_address
from lakewarden.authn.json_fetch import FetchFailed, FetchJson, JsonObject, PostJson
from lakewarden.authn.provider import Introspection, OidcProvider


class IntrospectionEndpoint:
    """Introspects single tokens. Thread-safe."""

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
        """Return the provider's answer for an active token (section 2.2), None for any other.

        Raises:
            FetchFailed: it does not answer, or its answer does not follow RFC 7662.

        """
        form = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        address = self.address()
        try:
            answer = self._post(address, form, self._headers)
        except FetchFailed:
            self._discovered = None  # the endpoint may have changed: discover it again
            raise
        active = answer.get("active")
        if not isinstance(active, bool):
            raise FetchFailed(f"{address} does not answer as RFC 7662 says: 'active' is missing")
        if not active:
            return None
        return {name: value for name, value in answer.items() if value is not None and name != "active"}

    def address(self) -> str:
        """The endpoint: configured, or discovered and kept until a call fails. Raises FetchFailed."""
        if self._configured is not None:
            return self._configured
        address = self._discovered or discovered_address(self._provider, "introspection_endpoint", fetch=self._fetch)
        self._discovered = address
        return address


def _basic(client_id: str, client_secret: str) -> str:
    """HTTP Basic credentials; both parts are form-encoded before they are joined (RFC 6749 section 2.3.1)."""
    pair = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
    return f"Basic {b64encode(pair.encode()).decode()}"
