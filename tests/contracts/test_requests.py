"""OpenFGA behind the whole application: a right that one request grants counts for the next; an outage is answered 503."""

from collections.abc import Iterator

import pytest

from lakewarden import backends
from lakewarden.authz.decision_cache import CALLER_PRINCIPALS, HELD_PRIVILEGES
from lakewarden.authz.ledger.models import Change
from lakewarden.authz.openfga import reconcile, store
from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer
from lakewarden.config import OpenFgaConfig
from lakewarden.tasks.authorization_changes import apply_authorization_changes
from tenants.models import Warehouse
from tests.contracts.openfga_decides import PATIENT, configured
from tests.installation import admin, admin_context, client, grant, stranger, warehouse
from tests.servers import openfga as servers
from tests.servers.asgi_client import Answer, AsgiClient
from tests.servers.openfga import OpenFgaServer

__all__ = ["admin", "admin_context", "client", "grant", "stranger", "warehouse"]


@pytest.fixture
def mortal_server() -> Iterator[OpenFgaServer]:
    with servers.start(flags=PATIENT) as running:
        yield running


@pytest.fixture
def configuration(mortal_server: OpenFgaServer, database: None) -> Iterator[OpenFgaConfig]:
    """Everything decides by a server that the test may stop."""
    with configured(mortal_server) as settings:
        store.migrate(settings)
        backends.authorizer.cache_clear()
        yield settings
        decides = backends.authorizer()
        assert isinstance(decides, OpenFgaAuthorizer)
        decides.close()
    backends.authorizer.cache_clear()
    HELD_PRIVILEGES.clear()
    CALLER_PRINCIPALS.clear()


def grants(caller: AsgiClient, warehouse: Warehouse, side: str, privilege: str) -> Answer:
    body = {side: [{"privilege": privilege, "principal": {"user": "oidc~stranger"}}]}
    return caller.post(f"/management/v1/warehouse/{warehouse.id}/grants", body)


def test_requests_see_grants_and_revocations_of_the_one_before(
    configuration: OpenFgaConfig, admin: AsgiClient, stranger: AsgiClient, warehouse: Warehouse
) -> None:
    target = f"/management/v1/warehouse/{warehouse.id}"
    assert stranger.get("/management/v1/whoami").status == 200
    for _ in range(5):
        assert stranger.get(target).status == 404
        assert grants(admin, warehouse, "writes", "select").status == 204
        assert not Change.objects.exists()
        assert stranger.get(target).status == 200
        assert stranger.call("DELETE", target).status == 403
        assert [each["name"] for each in stranger.get("/management/v1/warehouse").json()["warehouses"]] == ["lake"]
        assert grants(admin, warehouse, "deletes", "select").status == 204
    assert stranger.get("/management/v1/warehouse").status == 404
    found = reconcile.reconcile(configuration, dry_run=True)
    assert (found.missing, found.surplus) == (0, 0)


def test_in_an_outage_what_is_known_is_answered_and_all_else_is_503(
    configuration: OpenFgaConfig,
    mortal_server: OpenFgaServer,
    admin: AsgiClient,
    stranger: AsgiClient,
    warehouse: Warehouse,
) -> None:
    target = f"/management/v1/warehouse/{warehouse.id}"
    assert stranger.get("/management/v1/whoami").status == 200
    assert admin.get(target).status == 200
    mortal_server.stop()
    assert admin.get(target).status == 200
    refused = stranger.get(target)
    assert refused.error() == (503, "ServiceUnavailableException")
    assert int(refused.headers["retry-after"]) >= 1
    mortal_server.start()  # in memory: it has forgotten the store
    assert stranger.get(target).status == 503
    assert "was created in OpenFGA" in " ".join(store.migrate(configuration))
    assert stranger.get(target).status == 503
    assert reconcile.reconcile(configuration, dry_run=False).missing > 0
    assert stranger.get(target).status == 404
    assert grants(admin, warehouse, "writes", "select").status == 204
    assert stranger.get(target).status == 200


def test_the_worker_applies_what_a_request_could_not(
    configuration: OpenFgaConfig, mortal_server: OpenFgaServer, admin: AsgiClient, warehouse: Warehouse
) -> None:
    Change.objects.create(
        operation="write", principal_id="oidc~a", relation="select", object_type="warehouse", object_id="w"
    )
    apply_authorization_changes(0)
    assert not Change.objects.exists()
