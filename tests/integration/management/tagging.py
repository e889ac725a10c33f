"""Tag definitions and tags by HTTP, in few words; for all tests of tags."""

from typing import Any
from urllib.parse import quote

from catalog.access import namespace_chain, tabular_chain
from catalog.models import Namespace, Tabular
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants import access
from tenants.models import TagDefinition
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient

M = "/management/v1"
DEFINITION = f"{M}/tag-definition"
EVE = PrincipalId("oidc~eve")
EVERYWHERE = ("warehouse", "namespace", "table", "view", "generic-table", "column")


def define(caller: AsgiClient, name: str, *, kind: str = "free-text", **members: Any) -> Answer:
    body = {"name": name, "scope": list(EVERYWHERE), "value-kind": kind}
    return caller.post(DEFINITION, body | {key.replace("_", "-"): value for key, value in members.items()})


def defined(caller: AsgiClient, name: str, **members: Any) -> str:
    """The id of a new definition."""
    answer = define(caller, name, **members)
    assert answer.status == 201, answer.body
    return str(answer.json()["id"])


def place(lake: Lake, name: str = "") -> str:
    """The management path of the warehouse, or of the namespace, table or view with the name."""
    warehouse = f"{M}/warehouse/{lake.warehouse_id}"
    if not name:
        return warehouse
    namespace = Namespace.everything.filter(path=name.split("/")).first()
    if namespace is not None:
        return f"{warehouse}/namespace/{namespace.id}"
    tabular = Tabular.everything.get(name=name)
    return f"{warehouse}/{tabular.kind}/{tabular.uuid}"


def put(caller: AsgiClient, where: str, tag: str, value: str | None = None) -> Answer:
    body = {} if value is None else {"value": value}
    return caller.call("PUT", f"{where}/tags/{quote(tag, safe='')}", json=body)


def take(caller: AsgiClient, where: str, tag: str) -> Answer:
    return caller.delete(f"{where}/tags/{quote(tag, safe='')}")


def tags(caller: AsgiClient, where: str, *, effective: bool = False) -> dict[str, str | None]:
    """Names and values."""
    answer = caller.get(f"{where}/tags{'?effective=true' if effective else ''}")
    assert answer.status == 200, answer.body
    return {each["name"]: each.get("value") for each in answer.json()["tags"]}


def column(where: str, name: str) -> str:
    return f"{where}/column/{quote(name, safe='')}"


def give(name: str, privilege: Privilege, principal: PrincipalId = EVE) -> None:
    """On the table, namespace or tag definition with the name."""
    definition = TagDefinition.objects.filter(name=name).first()
    namespace = Namespace.objects.select_related("warehouse__project").filter(path=[name]).first()
    if definition is not None:
        chain = access.tag_chain(definition)
    elif namespace is not None:
        chain = namespace_chain(namespace)
    else:
        chain = tabular_chain(Tabular.objects.select_related("namespace__warehouse__project").get(name=name))
    ledger.give(chain, [(principal, privilege)], granted_by=ADMIN)
    projects.bump_epoch(DEFAULT_PROJECT_ID)
