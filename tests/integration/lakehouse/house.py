"""A caller of the `/lakehouse/v1` facade."""

from dataclasses import dataclass, replace
from typing import Any

from tests.servers.asgi_client import Answer, AsgiClient

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "type": "string", "required": True}],
}


@dataclass(frozen=True)
class House:
    """`call` takes paths below `base`."""

    client: AsgiClient
    base: str = "/lakehouse/v1"

    def at(self, base: str) -> "House":
        return replace(self, base=base)

    def as_user(self, name: str) -> "House":
        return replace(self, client=self.client.as_user(name))

    def call(self, method: str, path: str, json: Any = None, **headers: str) -> Answer:
        return self.client.call(method, self.base + path, json=json, headers=headers)

    def create_namespace(self, *path: str) -> Answer:
        return self.call("POST", "/namespaces", {"namespace": list(path), "properties": {"owner": "data"}})

    def create_table(self, name: str, *, within: str = "default") -> Answer:
        return self.call("POST", f"/namespaces/{within}/tables", {"name": name, "schema": SCHEMA})
