from concurrent.futures import ThreadPoolExecutor

from click.testing import CliRunner, Result

from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger import grants as ledger
from lakewarden.cli.commands import main
from lakewarden.context import SYSTEM
from lakewarden.events.models import OutboxEvent
from tenants.access import SERVER
from tenants.models import User
from tests.servers.asgi_client import AsgiClient

NIL = "00000000-0000-0000-0000-000000000000"


def test_info_before_bootstrap_says_so_and_keeps_the_server_id(client: AsgiClient) -> None:
    alice = client.as_user("alice")
    before = alice.get("/management/v1/info").json()
    assert before["bootstrapped"] is False
    alice.post("/management/v1/bootstrap", {"accept-terms-of-use": True})
    after = alice.get("/management/v1/info").json()
    assert after == {**before, "bootstrapped": True}


def test_info_tells_version_and_backend(admin: AsgiClient) -> None:
    told = admin.get("/management/v1/info").json()
    assert told["license-status"] == {"license-type": "Apache-2.0", "valid": True}
    assert told["lakekeeper-version"].split(".") > ["0", "12"]
    assert [told[f"{cloud}-system-identities-enabled"] for cloud in ("aws", "azure", "gcp")] == [False] * 3
    assert (told["default-project-id"], told["authz-backend"]) == (NIL, "database")
    assert told["queues"] == ["soft_deletion", "tabular_purge", "task_log_cleanup"]


def test_bootstrap_makes_the_caller_administrator(client: AsgiClient) -> None:
    alice = client.as_user("alice")
    answer = alice.post("/management/v1/bootstrap", {"accept-terms-of-use": True, "is-operator": False})
    assert (answer.status, answer.body) == (204, b"")
    assert alice.post("/management/v1/project", {"project-name": "mine"}).status == 201
    assert [project["project-id"] for project in alice.get("/management/v1/project-list").json()["projects"]] == [
        NIL,
        alice.get("/management/v1/project-list").json()["projects"][1]["project-id"],
    ]


def test_bootstrap_describes_the_administrator_even_when_he_was_known(client: AsgiClient) -> None:
    alice = client.as_user("alice")
    alice.get("/management/v1/whoami")
    described = {"user-name": "Alice A.", "user-email": "a@example.org", "user-type": "application"}
    assert alice.post("/management/v1/bootstrap", {"accept-terms-of-use": True, **described}).status == 204
    user = User.objects.get(id="oidc~alice")
    assert (user.name, user.email, user.user_type) == ("Alice A.", "a@example.org", "application")


def test_second_bootstrap_is_refused_for_everybody(admin: AsgiClient, stranger: AsgiClient) -> None:
    for caller in (admin, stranger):
        answer = caller.post("/management/v1/bootstrap", {"accept-terms-of-use": True})
        assert answer.error() == (400, "CatalogAlreadyBootstrapped")
    assert stranger.post("/management/v1/project", {"project-name": "mine"}).status == 403


def test_of_several_bootstraps_at_once_one_wins(client: AsgiClient) -> None:
    def bootstrap(name: str) -> int:
        return client.as_user(name).post("/management/v1/bootstrap", {"accept-terms-of-use": True}).status

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(bootstrap, "abcd")) == [204, 400, 400, 400]


def test_bootstrap_without_accepting_the_terms_changes_nothing(client: AsgiClient) -> None:
    alice = client.as_user("alice")
    assert alice.post("/management/v1/bootstrap", {"accept-terms-of-use": False}).status == 400
    assert alice.post("/management/v1/bootstrap", {}).status == 400
    assert alice.get("/management/v1/info").json()["bootstrapped"] is False


def test_bootstrap_as_operator_is_for_automation(client: AsgiClient) -> None:
    robot = client.as_user("engine-robot")
    assert robot.post("/management/v1/bootstrap", {"accept-terms-of-use": True, "is-operator": True}).status == 204
    assert [pair for pair in ledger.on(SERVER) if pair[0] == "oidc~engine-robot"] == [("oidc~engine-robot", "operator")]
    actions = {each["action"] for each in robot.get("/management/v1/project/actions").json()["allowed-actions"]}
    assert {"create_warehouse", "create_role", "read_grants"} <= actions
    assert AuditEntry.objects.get(action="bootstrapServer").details == {
        "admin": "oidc~engine-robot",
        "privilege": "operator",
    }


def reopen(*options: str) -> Result:
    return CliRunner().invoke(main, ["reopen-bootstrap", *options])


def test_a_reopened_bootstrap_makes_one_more_administrator(admin: AsgiClient, client: AsgiClient) -> None:
    told = reopen("--yes")
    assert told.exit_code == 0
    assert "anybody with a valid token can" in told.output
    row = AuditEntry.objects.get(action="reopenBootstrap")
    assert (row.actor, row.user_agent) == (SYSTEM, "lakewarden reopen-bootstrap")
    assert OutboxEvent.objects.filter(type="reopenBootstrap").count() == 1
    assert reopen("--yes").output == "The server can already be bootstrapped; nothing was changed\n"

    def bootstrap(name: str) -> int:
        return client.as_user(name).post("/management/v1/bootstrap", {"accept-terms-of-use": True}).status

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(bootstrap, "abcd")) == [204, 400, 400, 400]
    holders = {principal for principal, _ in ledger.on(SERVER)}
    assert len(holders) == 2
    assert "oidc~admin" in holders
    assert admin.post("/management/v1/project", {"project-name": "mine"}).status == 201


def test_bootstrap_is_not_reopened_without_a_yes(admin: AsgiClient, stranger: AsgiClient) -> None:
    told = reopen()
    assert told.exit_code == 1
    assert "Nothing was changed" in told.output
    assert "--yes" in told.output
    assert stranger.post("/management/v1/bootstrap", {"accept-terms-of-use": True}).status == 400


def test_a_deleted_user_does_not_become_administrator_by_a_reopened_bootstrap(
    admin: AsgiClient, stranger: AsgiClient
) -> None:
    assert stranger.get("/management/v1/whoami").status == 200
    assert admin.delete("/management/v1/user/oidc~stranger").status == 204
    assert reopen("--yes").exit_code == 0
    answer = stranger.post("/management/v1/bootstrap", {"accept-terms-of-use": True})
    assert answer.error() == (403, "ForbiddenException")
    assert [principal for principal, _ in ledger.on(SERVER)] == ["oidc~admin"]
    assert admin.get("/management/v1/info").json()["bootstrapped"] is False


def test_whoami_provisions_the_caller(admin: AsgiClient, stranger: AsgiClient) -> None:
    assert not User.objects.filter(id="oidc~stranger").exists()
    told = stranger.get("/management/v1/whoami").json()
    assert told.pop("created-at")
    assert told == {
        "id": "oidc~stranger",
        "name": "Stranger",
        "email": "stranger@example.org",
        "user-type": "human",
        "last-updated-with": "create-endpoint",
        "is-instance-admin": False,
    }
    assert User.objects.filter(id="oidc~stranger").exists()
