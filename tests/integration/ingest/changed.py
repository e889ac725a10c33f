"""Changes of what the gateway stands on: settings, rights, tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ingest.services import log
from ingest.services.kafka import placing
from ingest.services.statements import LogUnavailable
from lakewarden import config
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants.access import warehouse_chain
from tenants.models import Warehouse
from tenants.services import projects
from tests.servers.asgi_client import AsgiClient

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "string", "required": False}]}


def limits(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    whole = config.current()
    altered = whole.model_copy(update={"ingest": whole.ingest.model_copy(update=changed)})
    monkeypatch.setattr(config, "current", lambda: altered)


@contextmanager
def log_gone() -> Iterator[None]:
    """The log does not answer: neither whoever appends, nor the replay of what was kept meanwhile."""

    async def fail(*_: Any, **__: Any) -> Any:
        raise LogUnavailable("gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "_appended", fail)
        patch.setattr(log, "head", fail)
        patch.setattr(placing, "run", fail)
        yield


def revoke(lake: Warehouse, name: str, privilege: str) -> None:
    ledger.remove(warehouse_chain(lake)[-1], [(PrincipalId(f"oidc~{name}"), Privilege(privilege))])
    projects.bump_epoch(lake.project_id)


def create_table(client: AsgiClient, lake: Warehouse, name: str) -> str:
    """Its id."""
    answer = client.post(f"/catalog/v1/{lake.id}/namespaces/default/tables", {"name": name, "schema": SCHEMA})
    assert answer.status == 200, answer
    return str(answer.json()["metadata"]["table-uuid"])
