"""Data contracts by HTTP, in few words; for all tests of contracts."""

from typing import Any

from catalog.models import Namespace, Tabular
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient

M = "/management/v1"


def at(lake: Lake, name: str = "") -> str:
    """The management path of the contract of the warehouse, or of the namespace, table or view with the name."""
    warehouse = f"{M}/warehouse/{lake.warehouse_id}"
    if not name:
        return f"{warehouse}/contract"
    namespace = Namespace.everything.filter(path=name.split("/")).first()
    if namespace is not None:
        return f"{warehouse}/namespace/{namespace.id}/contract"
    tabular = Tabular.everything.get(name=name)
    return f"{warehouse}/{tabular.kind}/{tabular.uuid}/contract"


def put(caller: AsgiClient, where: str, **rules: Any) -> Answer:
    return caller.call("PUT", where, json={name.replace("_", "-"): value for name, value in rules.items()})


def set_(caller: AsgiClient, where: str, **rules: Any) -> None:
    answer = put(caller, where, **rules)
    assert answer.status == 200, answer.body


def field(identifier: int, name: str, kind: Any = "string", *, required: bool = False, **more: Any) -> dict[str, Any]:
    return {"id": identifier, "name": name, "type": kind, "required": required, **more}


ID, PLACE = field(1, "id", "long", required=True), field(2, "place", doc="where")
"""The columns of `SCHEMA` as the catalog numbers them."""


def becomes(*fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Updates that give a table this schema."""
    schema = {"type": "struct", "fields": list(fields)}
    return [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]


def refused(answer: Answer, *words: str) -> None:
    """A 409 whose message has all the words."""
    assert answer.status == 409, answer.body
    error = answer.json()["error"]
    assert error["type"] == "ContractViolatedException", error
    for word in words:
        assert word in error["message"], error["message"]


def columns(lake: Lake, name: str) -> list[str]:
    metadata = lake.load(name)["metadata"]
    schema = next(each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"])
    return [each["name"] for each in schema["fields"]]
