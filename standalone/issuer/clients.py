"""OAuth 2.0 clients of the development issuer (RFC 6749 section 2), stored in clients.json."""

# mypy: disallow-subclassing-any=false
# (authlib carries no types)

import secrets
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from authlib.oauth2.rfc6749 import ClientMixin, InvalidScopeError

from standalone.issuer.state import StateDir

CLIENTS_FILE: Final = "clients.json"
SCOPES: Final = ("catalog", "sign", "openid", "profile", "email", "offline_access")

_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Client(ClientMixin):
    """A registered client. One without a secret is public and authenticates by PKCE or by a device code.

    `roles` go into tokens that it gets for itself. With `token_format` `opaque` its access tokens are no JWTs.
    """

    client_id: str
    client_secret: str | None
    grant_types: tuple[str, ...]
    scopes: tuple[str, ...]
    default_scopes: tuple[str, ...]
    roles: tuple[str, ...] = ()
    token_format: str = "jwt"  # noqa: S105 - a format's name

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str | None:
        return None

    def get_allowed_scope(self, scope: str | None) -> str:
        """Return the scope to grant: the default when none is asked for.

        Raises:
            InvalidScopeError: something else is asked for than this client may have (RFC 6749 section 3.3).

        """
        asked = (scope or "").split()
        if set(asked).difference(self.scopes):
            raise InvalidScopeError(f"This client may ask for: {' '.join(self.scopes)}.")
        return " ".join(asked or self.default_scopes)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Allows redirects to any port and path on this machine (RFC 8252 section 7.3), and nowhere else."""
        try:
            parts = urlsplit(redirect_uri)
            port = parts.port
        except ValueError:
            return False
        is_bare = port != 0 and parts.username is None and parts.password is None and not parts.fragment
        return parts.scheme == "http" and parts.hostname in _LOOPBACK_NAMES and is_bare and redirect_uri.isprintable()

    def check_client_secret(self, client_secret: str) -> bool:
        own = self.client_secret
        return own is not None and secrets.compare_digest(own.encode(), client_secret.encode())

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        return (method == "none") == (self.client_secret is None)

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code" and self.check_grant_type("authorization_code")

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.grant_types


class Clients:
    """The registered clients; the file is read each time, because it is small and may be edited."""

    def __init__(self, state: StateDir) -> None:
        self._state = state

    def find(self, client_id: str) -> Client | None:
        entry = (self._state.read(CLIENTS_FILE) or {}).get(client_id)
        return None if entry is None else _from_json(client_id, entry)

    def ensure(self, *clients: Client) -> list[Client]:
        """Add missing clients and return all as they are stored. The caller must hold the state's lock."""
        stored = self._state.read(CLIENTS_FILE) or {}
        missing = [client for client in clients if client.client_id not in stored]
        if missing:
            self._state.write(CLIENTS_FILE, stored | {client.client_id: _to_json(client) for client in missing})
            stored = self._state.read(CLIENTS_FILE) or {}
        return [_from_json(client.client_id, stored[client.client_id]) for client in clients]


def _to_json(client: Client) -> dict[str, Any]:
    return {name: value for name, value in asdict(client).items() if name != "client_id"}


def _from_json(client_id: str, entry: dict[str, Any]) -> Client:
    return Client(
        client_id=client_id,
        client_secret=entry["client_secret"],
        grant_types=tuple(entry["grant_types"]),
        scopes=tuple(entry["scopes"]),
        default_scopes=tuple(entry["default_scopes"]),
        roles=tuple(entry.get("roles", ())),
        token_format=entry.get("token_format", "jwt"),
    )
