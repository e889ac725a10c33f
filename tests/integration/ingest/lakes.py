"""Fixtures: the namespace `default` in the only warehouse, in which `engine` may create and modify; buckets are full again."""

from pathlib import Path

import pytest

from ingest.api import requests, sockets
from ingest.api import warehouses as names
from lakewarden.authz.actions import ProjectAction
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId, RequestContext
from lakewarden.storage.profiles import parse_profile
from tenants import access
from tenants.models import Warehouse
from tenants.services import projects, warehouses
from tests.installation import ADMIN
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def lake(warehouse: Warehouse, engine: AsgiClient) -> Warehouse:
    for bucket in (requests._BUCKETS, sockets._OPENINGS):
        bucket._known.clear()
    names._KEPT.clear()
    answer = engine.post(f"/catalog/v1/{warehouse.id}/namespaces", {"namespace": ["default"]})
    assert answer.status == 200
    return warehouse


@pytest.fixture
def other(lake: Warehouse, admin_context: RequestContext, engine: AsgiClient, tmp_path: Path) -> Warehouse:
    """A second warehouse, in which `engine` may do the same."""
    granted = access.project(admin_context, lake.project_id, ProjectAction.CREATE_WAREHOUSE)
    profile = parse_profile({"type": "local", "base-path": str(tmp_path / "other")})
    made = warehouses.create(granted, "other", profile=profile, delete_profile={"type": "hard"})
    rights = [(PrincipalId("oidc~engine"), Privilege(each)) for each in ("create", "modify")]
    ledger.give(access.warehouse_chain(made), rights, granted_by=ADMIN)
    projects.bump_epoch(lake.project_id)
    assert engine.post(f"/catalog/v1/{made.id}/namespaces", {"namespace": ["default"]}).status == 200
    return made
