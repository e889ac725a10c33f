"""For the tests with Keycloak: one Keycloak and one `lakewarden serve` that trusts two of its realms.

`lake` is the provider `oidc`, `partner` the provider `partner`, and `pond`, made alike, is trusted by nobody.
`operator` is the server's administrator; the client `spark` may do in `warehouse` what an engine does.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.spark.catalogs import RestCatalog
from pipeline.spark.session import session
from standalone.provisioning import ENGINE_PRIVILEGES, ManagementClient
from standalone.ready import ReadyWarehouse
from tests.identity.keycloak.caller import Caller
from tests.identity.keycloak.lane import AUDIENCE, CLOCK_SKEW_S, CallerOf
from tests.identity.keycloak.sign_in import tokens_by_code
from tests.servers import keycloak as keycloak_server
from tests.servers.keycloak import Keycloak, Realm
from tests.servers.lakewarden_serve import LakewardenServer, serve

# what is begun at the lane's start and looked at when tokens have run out; then what stops Keycloak
_AT_THE_END = ("test_patience.py", "test_outage.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _AT_THE_END.index(item.path.name) if item.path.name in _AT_THE_END else -1)


@pytest.fixture(scope="session")
def keycloak() -> Iterator[Keycloak]:
    with keycloak_server.start() as running:
        yield running


@pytest.fixture(scope="session")
def realm(keycloak: Keycloak) -> Realm:
    return keycloak.create_realm("lake")


@pytest.fixture(scope="session")
def partner(keycloak: Keycloak) -> Realm:
    """A second trusted realm, whose keys a test may change without harm to the others."""
    return keycloak.create_realm("partner")


@pytest.fixture(scope="session")
def pond(keycloak: Keycloak) -> Realm:
    """A realm that the server does not trust, with the same clients and the same audience."""
    return keycloak.create_realm("pond")


@pytest.fixture(scope="session")
def lakewarden(realm: Realm, partner: Realm) -> Iterator[LakewardenServer]:
    """The lane's server, bootstrapped over REST by the client `operator`."""
    settings = {
        "LAKEWARDEN__OPENID__OIDC__ISSUER": realm.issuer,
        "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE,
        "LAKEWARDEN__OPENID__OIDC__CLOCK_SKEW_S": str(CLOCK_SKEW_S),
        "LAKEWARDEN__OPENID__OIDC__ROLES_CLAIM": "realm_access.roles",
        "LAKEWARDEN__OPENID__PARTNER__ISSUER": partner.issuer,
        "LAKEWARDEN__OPENID__PARTNER__AUDIENCE": AUDIENCE,
        "LAKEWARDEN__OPENID__PARTNER__ROLES_CLAIM": "realm_access.roles",
    }
    with serve(settings) as server:
        first = Caller(server.uri, realm.client_token("operator"))
        answer = first.post("/management/v1/bootstrap", {"accept-terms-of-use": True})
        assert answer.status == 204, answer
        yield server


@pytest.fixture(scope="session", autouse=True)
def brief(lakewarden: LakewardenServer, realm: Realm) -> str:
    """A token that lives for a second, accepted once at the lane's start."""
    token = realm.client_token("brief")
    assert Caller(lakewarden.uri, token).whoami().status == 200
    return token


@pytest.fixture(scope="session", autouse=True)
def never_shown(realm: Realm) -> str:
    """A token like `brief` that the server does not see before it has expired."""
    return realm.client_token("brief")


@pytest.fixture
def caller(lakewarden: LakewardenServer, realm: Realm) -> CallerOf:
    """`caller("spark")` calls with a fresh token of that client; `caller(token=...)` with that token."""

    def made(client: str = "", *, token: str | None = None) -> Caller:
        return Caller(lakewarden.uri, token or realm.client_token(client))

    return made


@pytest.fixture
def alice_tokens(realm: Realm) -> dict[str, str]:
    """Access, refresh and id token of alice, who signed in by code with PKCE just now."""
    return tokens_by_code(realm, "alice")


@pytest.fixture(scope="session")
def warehouse(lakewarden: LakewardenServer, realm: Realm) -> ReadyWarehouse:
    """The warehouse `lake`; the client `spark` may create, modify, select and describe in it."""
    management = ManagementClient(lakewarden.management_uri, realm.client_token("operator"))
    made = management.ensure_warehouse("lake", base_path=lakewarden.local_root / "lake")
    spark = Caller(lakewarden.uri, realm.client_token("spark"))
    management.grant(made, application=spark.user, name="spark", privileges=ENGINE_PRIVILEGES)
    return made


@pytest.fixture(scope="session")
def engine(lakewarden: LakewardenServer, realm: Realm, warehouse: ReadyWarehouse) -> RestCatalog:
    """The settings with which an engine connects to the warehouse: the client `spark`, whose tokens come from Keycloak."""
    return RestCatalog(
        name="lake",
        uri=lakewarden.catalog_uri,
        warehouse=warehouse.name,
        credential="spark:spark-secret",
        oauth2_server_uri=realm.token_endpoint,
        scope="catalog",
        # Keycloak takes renewal by token exchange from clients only that are allowed to, and not with a bearer token
        extra={"token-exchange-enabled": "false"},
    )


@pytest.fixture(scope="session")
def spark(engine: RestCatalog) -> Iterator[SparkSession]:
    with session([engine], app_name="identity", master="local[2]") as running:
        yield running


@pytest.fixture(scope="session")
def after_first_token_of_spark(spark: SparkSession, realm: Realm) -> str:
    """A token that is a little younger than the first one of the Spark session, which is in use by then."""
    spark.sql("CREATE NAMESPACE before")
    return realm.client_token("spark")
