"""A `lakewarden serve` beside stores that a test makes fail, as its administrator uses it over HTTP."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import urllib3

from standalone.commands import AUDIENCE
from tests.servers.issuer import RunningIssuer, run_issuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared

WAREHOUSES: Final = "/management/v1/warehouse"
_SCHEMA: Final = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
_DELEGATION: Final = "X-Iceberg-Access-Delegation"


@dataclass
class ServedLake:
    """Answers of a server for one caller; each warehouse has the table `t` in `ns`."""

    server: LakewardenServer
    issuer: RunningIssuer
    token: str

    def __post_init__(self) -> None:
        self._pool = urllib3.PoolManager(maxsize=40, retries=False, timeout=60.0)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> urllib3.BaseHTTPResponse:
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        return self._pool.request(method, f"{self.server.uri}{path}", json=body, headers=sent)

    def for_engine(self, warehouse: str) -> Self:
        """For another caller, who may use this warehouse."""
        engine = replace(self, token=self.issuer.engine_token())
        engine.ask("GET", "/management/v1/whoami")  # users are known from their first request on
        user = f"oidc~{self.issuer.identities.engine.client_id}"
        path = f"/management/v1/permissions/warehouse/{warehouse}/assignments"
        answer = self.ask("POST", path, {"writes": [{"type": "modify", "user": user}], "deletes": []})
        assert answer.status == 204, answer.data
        return engine

    def warehouse(self, name: str, profile: dict[str, Any], **more: Any) -> str:
        body = {"warehouse-name": name, "storage-profile": profile, "delete-profile": {"type": "hard"}}
        answer = self.ask("POST", WAREHOUSES, body | more)
        assert answer.status in {200, 201}, answer.data
        identifier = str(answer.json()["id"])
        assert self.ask("POST", f"/catalog/v1/{identifier}/namespaces", {"namespace": ["ns"]}).status == 200
        assert self.create(identifier, "t").status == 200
        return identifier

    def create(self, warehouse: str, name: str, *, access: str = "") -> urllib3.BaseHTTPResponse:
        headers = {_DELEGATION: access} if access else {}
        return self.ask("POST", self.tables(warehouse), {"name": name, "schema": _SCHEMA}, **headers)

    def load(self, warehouse: str, name: str = "t", *, access: str = "") -> urllib3.BaseHTTPResponse:
        headers = {_DELEGATION: access} if access else {}
        return self.ask("GET", f"{self.tables(warehouse)}/{name}", **headers)

    def commit(self, warehouse: str, name: str = "t") -> urllib3.BaseHTTPResponse:
        update = {"action": "set-properties", "updates": {"at": str(time.monotonic_ns())}}
        return self.ask("POST", f"{self.tables(warehouse)}/{name}", {"requirements": [], "updates": [update]})

    def drop(self, warehouse: str, name: str) -> urllib3.BaseHTTPResponse:
        return self.ask("DELETE", f"{self.tables(warehouse)}/{name}?purgeRequested=true")

    def file_of(self, warehouse: str, store: str) -> str:
        """The address of a file of `t`."""
        location = self.load(warehouse, access="client-managed").json()["metadata"]["location"]
        return f"{store}{location.removeprefix('s3:/')}/data/f.parquet"

    def sign(self, warehouse: str, uri: str, *, region: str) -> urllib3.BaseHTTPResponse:
        """A request to read."""
        asked = {"region": region, "method": "GET", "uri": uri, "headers": {}}
        return self.ask("POST", f"/catalog/{warehouse}/v1/aws/s3/sign", asked)

    def names(self, warehouse: str) -> set[str]:
        return {each["name"] for each in self.ask("GET", self.tables(warehouse)).json()["identifiers"]}

    def tasks(self, warehouse: str) -> list[dict[str, Any]]:
        """Newest first."""
        found: list[dict[str, Any]] = self.ask("POST", f"{WAREHOUSES}/{warehouse}/task/list", {}).json()["tasks"]
        return found

    @staticmethod
    def tables(warehouse: str) -> str:
        return f"/catalog/v1/{warehouse}/namespaces/ns/tables"


@contextmanager
def serve_lake(folder: Path, storage: Mapping[str, str], **settings: str) -> Iterator[ServedLake]:
    """With these settings of the section `storage`, and others by their full names."""
    with run_issuer(folder / "state") as issuer:
        admin = issuer.identities.admin
        openid = {"LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url, "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE}
        limits = {f"LAKEWARDEN__STORAGE__{name}": value for name, value in storage.items()}
        with prepared(openid | limits | settings) as server:
            server.bootstrap(f"oidc~{admin.client_id}")
            server.start()
            server.settings["LAKEWARDEN__SERVER__PORT"] = server.uri.rpartition(":")[2]  # for `doctor`
            yield ServedLake(server, issuer, issuer.token_of(admin.client_id, admin.client_secret))
