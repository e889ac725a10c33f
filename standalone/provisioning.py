"""Creates a warehouse and authorizes an engine on a new development server, through the management API."""

import json
from pathlib import Path
from typing import Any, Protocol, Self

import urllib3

from standalone.errors import EmbeddedError
from standalone.ready import ReadyWarehouse

ENGINE_PRIVILEGES = ("create", "modify", "select", "describe")
_CONFLICT = 409


class Credentials(Protocol):
    """A confidential client of the issuer; `subject` is the `sub` of its tokens."""

    @property
    def client_id(self) -> str: ...
    @property
    def client_secret(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def scope(self) -> str: ...


class ManagementClient:
    """The management API for one client; raises EmbeddedError for every unexpected response."""

    def __init__(self, management_uri: str, token: str) -> None:
        self._management_uri = management_uri
        self._headers = {"Authorization": f"Bearer {token}"}

    @classmethod
    def sign_in(cls, management_uri: str, endpoint: str, credentials: Credentials) -> Self:
        """Get a token by client credentials (RFC 6749 4.4) from the token endpoint."""
        form = {
            "grant_type": "client_credentials",
            "client_id": credentials.client_id,
            "client_secret": credentials.client_secret,
            "scope": credentials.scope,
        }
        with urllib3.PoolManager(retries=False, timeout=30.0) as http:
            response = _send(http, "POST", endpoint, fields=form, encode_multipart=False)
        return cls(management_uri, str(_content(response)["access_token"]))

    def ensure_warehouse(self, name: str, *, base_path: Path) -> ReadyWarehouse:
        """The warehouse `name`; created in the local directory `base_path` if it does not exist."""
        body = {
            "warehouse-name": name,
            "storage-profile": {"type": "local", "base-path": str(base_path)},
            "delete-profile": {"type": "hard"},
        }
        response = self._ask("POST", "/v1/warehouse", body, accepted=_CONFLICT)
        found = self._find_warehouse(name) if response.status == _CONFLICT else _content(response)
        location = f"file://{found['storage-profile']['base-path'].rstrip('/')}"
        return ReadyWarehouse(id=str(found["warehouse-id"]), name=name, location=location)

    def grant(self, warehouse: ReadyWarehouse, *, application: str, name: str, privileges: tuple[str, ...]) -> None:
        """Register the application (`oidc~<subject>`) and grant it the privileges. Idempotent."""
        described = {"id": application, "name": name, "user-type": "application", "update-if-exists": True}
        self._ask("POST", "/v1/user", described)
        writes = [{"privilege": privilege, "principal": {"user": application}} for privilege in privileges]
        self._ask("POST", f"/v1/warehouse/{warehouse.id}/grants", {"writes": writes, "deletes": []})

    def _find_warehouse(self, name: str) -> dict[str, Any]:
        listed = _content(self._ask("GET", "/v1/warehouse"))["warehouses"]
        for warehouse in listed:
            if warehouse["name"] == name:
                return dict(warehouse)
        raise EmbeddedError(
            f"The warehouse {name!r} exists but is not listed, so it was deactivated: activate it, "
            "or start with an empty directory (--data-dir)."
        )

    def _ask(self, method: str, path: str, body: object = None, *, accepted: int = 0) -> urllib3.BaseHTTPResponse:
        url = self._management_uri + path
        with urllib3.PoolManager(retries=False, timeout=30.0) as http:
            return _send(http, method, url, json=body, headers=self._headers, accepted=accepted)


def token_endpoint(issuer: str) -> str:
    """The token endpoint in the issuer's discovery document (OpenID Connect Discovery 1.0, section 4)."""
    with urllib3.PoolManager(retries=False, timeout=30.0) as http:
        document = _content(_send(http, "GET", f"{issuer}/.well-known/openid-configuration"))
    return str(document["token_endpoint"])


def _send(
    http: urllib3.PoolManager,
    method: str,
    url: str,
    *,
    accepted: int = 0,
    **request: Any,  # noqa: ANN401 (urllib3's own)
) -> urllib3.BaseHTTPResponse:
    try:
        response = http.request(method, url, **request)
    except urllib3.exceptions.HTTPError as error:
        raise EmbeddedError(f"{method} {url} got no answer: {error}") from error
    if response.status >= 300 and response.status != accepted:  # noqa: PLR2004 (the end of the successes)
        text = response.data.decode(errors="replace")[:500]
        raise EmbeddedError(f"{method} {url} was answered with {response.status}: {text}")
    return response


def _content(response: urllib3.BaseHTTPResponse) -> dict[str, Any]:
    try:
        content = json.loads(response.data)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise EmbeddedError(f"{response.url} did not answer with a JSON object: {response.data[:200]!r}")
    return content
