"""Realm roles of Keycloak, in the tokens of people, are roles of a project: who has one has its rights."""

from typing import Any

import pytest

from standalone.ready import ReadyWarehouse
from tests.identity.keycloak.caller import Caller, claims_of
from tests.identity.keycloak.lane import CallerOf
from tests.identity.keycloak.sign_in import tokens_by_code
from tests.servers.keycloak import Keycloak, Realm
from tests.servers.lakewarden_serve import LakewardenServer


@pytest.fixture(scope="module")
def analysts(lakewarden: LakewardenServer, realm: Realm, warehouse: ReadyWarehouse) -> str:
    """The id of a role that stands for `analyst` of the realm `lake`, and may select in the warehouse."""
    operator = Caller(lakewarden.uri, realm.client_token("operator"))
    made = operator.post("/management/v1/role", {"name": "analysts", "provider-id": "oidc", "source-id": "analyst"})
    assert made.status == 201, made
    write = {"privilege": "select", "principal": {"role": made.body["id"]}}
    granted = operator.post(f"/management/v1/warehouse/{warehouse.id}/grants", {"writes": [write]})
    assert granted.status == 204, granted
    return str(made.body["id"])


@pytest.fixture
def config(warehouse: ReadyWarehouse) -> str:
    return f"/catalog/v1/config?warehouse={warehouse.name}"


@pytest.mark.usefixtures("analysts")
def test_holder_of_the_role_has_its_rights_and_others_have_not(caller: CallerOf, realm: Realm, config: str) -> None:
    alice, bob = (caller(token=tokens_by_code(realm, name)["access_token"]) for name in ("alice", "bob"))

    assert "analyst" in claims_of(alice.token)["realm_access"]["roles"]
    assert alice.get(config).status == 200
    assert bob.get(config).status in {403, 404}


@pytest.mark.usefixtures("analysts")
def test_role_of_the_same_name_in_another_realm_has_none_of_its_rights(
    lakewarden: LakewardenServer, partner: Realm, config: str
) -> None:
    token = tokens_by_code(partner, "alice")["access_token"]

    assert "analyst" in claims_of(token)["realm_access"]["roles"]
    assert Caller(lakewarden.uri, token).get(config).status in {403, 404}


@pytest.mark.usefixtures("analysts")
def test_role_taken_away_in_keycloak_is_gone_with_the_next_token(
    keycloak: Keycloak, caller: CallerOf, realm: Realm, alice_tokens: dict[str, Any], config: str
) -> None:
    path = f"/lake/users/{claims_of(alice_tokens['access_token'])['sub']}/role-mappings/realm"
    role = keycloak.admin("GET", "/lake/roles/analyst")
    keycloak.admin("DELETE", path, [role])
    try:
        without = caller(token=tokens_by_code(realm, "alice")["access_token"])
        assert without.get(config).status in {403, 404}
    finally:
        keycloak.admin("POST", path, [role])
    assert caller(token=tokens_by_code(realm, "alice")["access_token"]).get(config).status == 200
