"""One warehouse's catalog routes, called as one user: arranges tests and shortens their calls."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from tests.servers.asgi_client import Answer, AsgiClient

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"id": 7, "name": "id", "type": "long", "required": True},
        {"id": 9, "name": "place", "type": "string", "required": False, "doc": "where"},
    ],
}
VIEW_VERSION: dict[str, Any] = {
    "version-id": 1,
    "timestamp-ms": 1_700_000_000_000,
    "schema-id": 0,
    "summary": {"engine-name": "tests"},
    "default-namespace": ["sales"],
    "representations": [{"type": "sql", "sql": "select id, place from orders", "dialect": "spark"}],
}

Names = str | Sequence[str]


@dataclass(frozen=True)
class Lake:
    """`warehouse_id` is the prefix of its paths; a namespace is given by its name, or the names of its path."""

    client: AsgiClient
    warehouse_id: str

    def as_user(self, name: str) -> "Lake":
        return replace(self, client=self.client.as_user(name))

    def path(self, *segments: Names, **query: str) -> str:
        """`path("namespaces", ("a", "b"), "tables")`, each segment encoded as clients do."""
        parts = [quote(each if isinstance(each, str) else "\x1f".join(each), safe="") for each in segments]
        return f"/catalog/v1/{self.warehouse_id}/{'/'.join(parts)}" + (f"?{urlencode(query)}" if query else "")

    def namespace(self, path: Names, *rest: Names, **query: str) -> str:
        return self.path("namespaces", path, *rest, **query)

    def table(self, name: str, *rest: Names, within: Names = "sales", **query: str) -> str:
        return self.namespace(within, "tables", name, *rest, **query)

    def view(self, name: str, *, within: Names = "sales") -> str:
        return self.namespace(within, "views", name)

    def create_namespace(self, *path: str, properties: Mapping[str, str] | None = None) -> Answer:
        body = {"namespace": list(path)} | ({} if properties is None else {"properties": properties})
        return self.client.post(self.path("namespaces"), body)

    def create_table(self, name: str, *, within: Names = "sales", **more: Any) -> Answer:
        body = {"name": name, "schema": SCHEMA} | {key.replace("_", "-"): value for key, value in more.items()}
        return self.client.post(self.namespace(within, "tables"), body)

    def load(self, name: str, *, within: Names = "sales") -> Any:
        """The whole answer of a load that must succeed."""
        answer = self.client.get(self.table(name, within=within))
        assert answer.status == 200, answer.body
        return answer.json()

    def commit(
        self,
        name: str,
        *updates: Mapping[str, Any],
        requirements: Sequence[Mapping[str, Any]] = (),
        within: Names = "sales",
    ) -> Answer:
        body = {"requirements": list(requirements), "updates": list(updates)}
        return self.client.post(self.table(name, within=within), body)

    def create_view(self, name: str, *, within: Names = "sales", **more: Any) -> Answer:
        body = {"name": name, "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}, **more}
        return self.client.post(self.namespace(within, "views"), body)

    def generic(self, *rest: Names, within: Names = "sales", mount: str = "/generic", **query: str) -> str:
        """The list of generic tables of a namespace, or one of them."""
        return self.namespace(within, "generic-tables", *rest, **query).replace("/catalog", mount, 1)

    def create_generic(self, name: str, *, within: Names = "sales", **more: Any) -> Answer:
        body = {"name": name, "format": "lance"} | {key.replace("_", "-"): value for key, value in more.items()}
        return self.client.post(self.generic(within=within), body)


def set_properties(**values: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": values}


def add_snapshot(identifier: int, *, sequence: int, location: str, parent: int | None = None) -> dict[str, Any]:
    """An append; its manifest list need not be there, the catalog never reads it."""
    snapshot: dict[str, Any] = {
        "snapshot-id": identifier,
        "sequence-number": sequence,
        "timestamp-ms": int(time.time() * 1000),
        "manifest-list": f"{location}/metadata/snap-{identifier}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return {"action": "add-snapshot", "snapshot": snapshot | ({} if parent is None else {"parent-snapshot-id": parent})}


def set_branch(name: str, identifier: int) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": identifier}


def identifier(name: str, within: Names = "sales") -> dict[str, Any]:
    return {"namespace": [within] if isinstance(within, str) else list(within), "name": name}
