"""Programs with tokens of their own (client credentials), as the server sees them for the first time."""

from standalone.ready import ReadyWarehouse
from tests.identity.keycloak.caller import Caller, claims_of
from tests.identity.keycloak.lane import CallerOf
from tests.servers.keycloak import Realm
from tests.servers.lakewarden_serve import LakewardenServer


def test_whoami_of_a_service_account_is_an_application_with_the_subject_of_its_token(caller: CallerOf) -> None:
    spark = caller("spark")

    answer = spark.whoami()

    assert answer.status == 200
    assert answer.body["id"] == f"oidc~{claims_of(spark.token)['sub']}"
    assert answer.body["user-type"] == "application"
    assert answer.body["name"] == "service-account-spark"


def test_config_call_that_is_refused_provisions_the_caller(caller: CallerOf, warehouse: ReadyWarehouse) -> None:
    newcomer = caller("other-tenant")

    refused = newcomer.get(f"/catalog/v1/config?warehouse={warehouse.name}")

    assert refused.status in {403, 404}
    assert newcomer.whoami().body["last-updated-with"] == "config-call-creation"


def test_client_of_another_realm_with_the_same_name_is_another_user(
    lakewarden: LakewardenServer, caller: CallerOf, partner: Realm
) -> None:
    ours, theirs = caller("spark"), Caller(lakewarden.uri, partner.client_token("spark"))

    ids = {ours.whoami().body["id"], theirs.whoami().body["id"]}

    assert len(ids) == 2
    assert f"partner~{claims_of(theirs.token)['sub']}" in ids


def test_rights_of_a_client_are_not_those_of_its_namesake_in_another_realm(
    lakewarden: LakewardenServer, caller: CallerOf, partner: Realm, warehouse: ReadyWarehouse
) -> None:
    path = f"/catalog/v1/config?warehouse={warehouse.name}"

    assert caller("spark").get(path).status == 200
    assert Caller(lakewarden.uri, partner.client_token("spark")).get(path).status in {403, 404}


def test_bootstrap_a_second_time_is_refused(caller: CallerOf) -> None:
    answer = caller("other-tenant").post("/management/v1/bootstrap", {"accept-terms-of-use": True})

    assert answer.status == 400
