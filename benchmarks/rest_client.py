"""Sets up and looks after what the scenarios need, over the public API; not measured."""

import json
import re
import time
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import urllib3

from benchmarks.failures import BenchmarkError
from benchmarks.load.http1 import Answer

Json = dict[str, Any]

_LOCATION = re.compile(rb'"metadata-location"\s*:\s*"([^"\\]*)"')
_FIRST_BYTES = 4096
_PARALLEL = 4
_GZIP = 31
_NO_CONTENT = 204
_RENEW_BEFORE_S = 120


class TokenSource:
    """Access tokens by client credentials (RFC 6749 4.4), renewed before they expire."""

    def __init__(self, endpoint: str, *, client_id: str, client_secret: str, scope: str) -> None:
        self._endpoint = endpoint
        self._form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        self._form["scope"] = scope
        self._token = ""
        self._expires = 0.0

    def __call__(self) -> str:
        if time.monotonic() > self._expires - _RENEW_BEFORE_S:
            asked = time.monotonic()
            with urllib3.PoolManager(retries=False, timeout=30.0) as http:
                response = http.request("POST", self._endpoint, fields=self._form, encode_multipart=False)
            content = _content(response, f"POST {self._endpoint}")
            self._token = str(content["access_token"])
            self._expires = asked + float(content.get("expires_in", 300))
        return self._token


class RestClient:
    """One warehouse of an Iceberg REST catalog. BenchmarkError for every answer that is not a success."""

    def __init__(self, uri: str, *, warehouse: str, token: Callable[[], str | None]) -> None:
        self.uri = uri.rstrip("/")
        self.token = token
        self._http = urllib3.PoolManager(retries=False, timeout=120.0, maxsize=_PARALLEL, block=True)
        config = self._send("GET", "/config", query={"warehouse": warehouse})
        prefix = config.get("overrides", {}).get("prefix") or config.get("defaults", {}).get("prefix")
        self.prefix = f"{prefix}/" if prefix else ""
        self._has_views = False

    def create_namespace(self, *path: str) -> None:
        self._ask("POST", "namespaces", {"namespace": list(path)})

    def create_table(self, namespace: str, name: str, schema: Json) -> Json:
        return self._ask(
            "POST", f"namespaces/{namespace}/tables", {"name": name, "schema": schema, "stage-create": False}
        )

    def create_view(self, namespace: str, view: Json) -> Json:
        self._has_views = True
        return self._ask("POST", f"namespaces/{namespace}/views", view)

    def register(self, namespace: str, name: str, metadata_location: str) -> Json:
        body = {"name": name, "metadata-location": metadata_location}
        return self._ask("POST", f"namespaces/{namespace}/register", body)

    def commit(self, namespace: str, name: str, updates: list[Json]) -> Json:
        body = {"requirements": [], "updates": updates}
        return self._ask("POST", f"namespaces/{namespace}/tables/{name}", body)

    def load(self, namespace: str, name: str) -> Json:
        return self._ask("GET", f"namespaces/{namespace}/tables/{name}")

    def load_for_files(self, namespace: str, name: str, *, delegation: str) -> Json:
        """As an engine loads it that wants this access to its files (spec, data-access)."""
        path = f"/{self.prefix}namespaces/{namespace}/tables/{name}"
        return _content(self._respond("GET", path, headers={"X-Iceberg-Access-Delegation": delegation}), f"GET {path}")

    def etag(self, namespace: str, name: str) -> str | None:
        """The ETag of a table's load answer, as gzip."""
        path = f"/{self.prefix}namespaces/{namespace}/tables/{name}"
        return self._respond("GET", path, headers={"Accept-Encoding": "gzip"}).headers.get("etag")

    def tables(self, namespace: str, *, page_size: int | None = None, token: str = "") -> Json:
        query = {} if page_size is None else {"pageSize": str(page_size), "pageToken": token}
        return self._ask("GET", f"namespaces/{namespace}/tables", query=query)

    def drop_namespace(self, name: str) -> None:
        """With all tables and views in it and their files."""
        if self._has_views:
            for view in self._ask("GET", f"namespaces/{name}/views")["identifiers"]:
                self._ask("DELETE", f"namespaces/{name}/views/{view['name']}")
        for table in self.tables(name)["identifiers"]:
            self._ask("DELETE", f"namespaces/{name}/tables/{table['name']}", query={"purgeRequested": "true"})
        self._ask("DELETE", f"namespaces/{name}")

    def _ask(self, method: str, path: str, body: Json | None = None, *, query: dict[str, str] | None = None) -> Json:
        return self._send(method, f"/{self.prefix}{path}", body=body, query=query)

    def _send(self, method: str, path: str, *, body: Json | None = None, query: dict[str, str] | None = None) -> Json:
        return _content(self._respond(method, path, body=body, query=query), f"{method} {path}")

    def _respond(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> urllib3.BaseHTTPResponse:
        token = self.token()
        sent = {
            "Accept": "application/json",
            **(headers or {}),
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }
        url = f"{self.uri}/v1{path}"
        try:
            if body is None:
                return self._http.request(method, url, fields=query, headers=sent)
            return self._http.request(method, url, json=body, headers=sent)
        except urllib3.exceptions.HTTPError as error:
            raise BenchmarkError(f"{method} {url} was not answered: {error}") from error


def in_parallel(actions: Iterable[Callable[[], object]]) -> None:
    """Run set-up calls a few at a time; the first failure is raised."""
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for done in [pool.submit(action) for action in actions]:
            done.result()


def metadata_location(answer: Answer) -> str:
    """Where a load or commit answer says that the metadata file is; the answer's body was kept."""
    head = answer.head.lower()
    start = answer.body[:_FIRST_BYTES]
    is_gzip = b"content-encoding: gzip" in head
    found = _LOCATION.search(zlib.decompressobj(_GZIP).decompress(start, _FIRST_BYTES) if is_gzip else start)
    if found is None:  # a server that writes it last
        whole = zlib.decompress(answer.body, _GZIP) if is_gzip else answer.body
        return str(json.loads(whole)["metadata-location"])
    return found[1].decode()


def _content(response: urllib3.BaseHTTPResponse, what: str) -> Json:
    if not 200 <= response.status < 300:  # noqa: PLR2004 the successes of HTTP
        raise BenchmarkError(
            f"{what} was answered with {response.status}: {response.data[:500].decode(errors='replace')}"
        )
    if response.status == _NO_CONTENT or not response.data:
        return {}
    content: Json = json.loads(response.data)
    return content
