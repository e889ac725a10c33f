"""Restores a dropped table through the management API: the demo's step about deletion."""

from typing import Any

import urllib3

from demo.connection import Connection
from lakewarden.errors import InternalError, Unavailable

KEPT_S = 24 * 3600
_TIMEOUT = urllib3.Timeout(total=30.0)
_REDIRECTS = 300


class Management:
    """The management API of the demo's warehouse, called with the engine's own rights."""

    def __init__(self, connection: Connection) -> None:
        self._warehouse = f"{connection.management_uri}/v1/warehouse/{connection.warehouse.id}"
        self._http = urllib3.PoolManager(retries=False, timeout=_TIMEOUT)
        form = {
            "grant_type": "client_credentials",
            "client_id": connection.engine.client_id,
            "client_secret": connection.engine.client_secret,
            "scope": connection.engine.scope,
        }
        token = self._answer("POST", connection.token_endpoint, fields=form, encode_multipart=False)
        self._headers = {"Authorization": f"Bearer {token['access_token']}"}

    def keep_what_is_dropped(self) -> None:
        """From now on dropped tables can be restored for a day."""
        profile = {"delete-profile": {"type": "soft", "expiration-seconds": KEPT_S}}
        self._call("POST", "delete-profile", json=profile)

    def dropped(self, namespace: str, name: str) -> dict[str, Any]:
        """The dropped table with this name. Raises InternalError if it does not exist."""
        for each in self._call("GET", "deleted-tabulars")["tabulars"]:
            if (each["namespace"], each["name"]) == ([namespace], name):
                return dict(each)
        raise InternalError(f"The dropped table {namespace}.{name} is not among those that can be restored.")

    def undrop(self, tabular: dict[str, Any]) -> None:
        self._call("POST", "deleted-tabulars/undrop", json={"targets": [{"type": "table", "id": tabular["id"]}]})

    def _call(self, method: str, path: str, **request: Any) -> dict[str, Any]:  # noqa: ANN401 urllib3's own
        return self._answer(method, f"{self._warehouse}/{path}", headers=self._headers, **request)

    def _answer(self, method: str, url: str, **request: Any) -> dict[str, Any]:  # noqa: ANN401 urllib3's own
        try:
            response = self._http.request(method, url, **request)
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"{url} could not be reached: {error}") from error
        if response.status >= _REDIRECTS:
            raise Unavailable(f"{method} {url} was answered with {response.status}: {response.data[:300]!r}")
        return dict(response.json()) if response.data else {}
