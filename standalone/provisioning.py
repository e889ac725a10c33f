"""Creates a warehouse and authorizes an engine on a new development server, through the management API."""

import json
import secrets
from pathlib import Path
from typing import Any, Protocol, Self

import urllib3

from standalone.errors import EmbeddedError
from standalone.ready import ReadyWarehouse
from standalone.s3.store import S3Store

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
        found, _ = self._ensure(name, {"storage-profile": {"type": "local", "base-path": str(base_path)}})
        location = f"file://{found['storage-profile']['base-path'].rstrip('/')}"
        return ReadyWarehouse(id=str(found["warehouse-id"]), name=name, location=location)

    def ensure_s3_warehouse(self, name: str, store: S3Store) -> ReadyWarehouse:
        """The warehouse `name`; created in the store if it does not exist, else given its present address and key."""
        issues_keys = self._issues_keys(store) if store.issues_keys is None else store.issues_keys
        storage = {"storage-profile": store.profile(issues_keys=issues_keys), "storage-credential": store.credential}
        found, is_new = self._ensure(name, storage)
        warehouse = ReadyWarehouse(id=str(found["warehouse-id"]), name=name, location=store.location)
        if not is_new:
            self._ask("POST", f"/v1/warehouse/{warehouse.id}/storage", storage)
        return warehouse

    def grant(self, warehouse: ReadyWarehouse, *, application: str, name: str, privileges: tuple[str, ...]) -> None:
        """Register the application (`oidc~<subject>`) and grant it the privileges. Idempotent."""
        described = {"id": application, "name": name, "user-type": "application", "update-if-exists": True}
        self._ask("POST", "/v1/user", described)
        writes = [{"privilege": privilege, "principal": {"user": application}} for privilege in privileges]
        self._ask("POST", f"/v1/warehouse/{warehouse.id}/grants", {"writes": writes, "deletes": []})

    def make_administrator(self, person: str, *, name: str) -> None:
        """Register the person (`oidc~<subject>`) as an administrator of the server and its default project.

        Idempotent.
        """
        described = {"id": person, "name": name, "user-type": "human", "update-if-exists": True}
        self._ask("POST", "/v1/user", described)
        for place, privilege in (("server", "admin"), ("project", "project_admin")):
            writes = [{"privilege": privilege, "principal": {"user": person}}]
            self._ask("POST", f"/v1/{place}/grants", {"writes": writes, "deletes": []})

    def _ensure(self, name: str, storage: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The warehouse, and whether it is new."""
        body = {"warehouse-name": name, "delete-profile": {"type": "hard"}, **storage}
        response = self._ask("POST", "/v1/warehouse", body, accepted=_CONFLICT)
        if response.status == _CONFLICT:
            return self._find_warehouse(name), False
        return _content(response), True

    def _issues_keys(self, store: S3Store) -> bool:
        """Whether the store issues keys that it limits, by a dry run."""
        body = {
            "warehouse-name": f"tried-{secrets.token_hex(8)}",
            "storage-profile": store.profile(issues_keys=True),
            "storage-credential": store.credential,
        }
        checks = _content(self._ask("POST", "/v1/warehouse-creation-validation", body))["checks"]
        failed = [each["name"] for each in checks if each["status"] == "failed"]
        return not any(name.startswith("vended-credentials") for name in failed)

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
