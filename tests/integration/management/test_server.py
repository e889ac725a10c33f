from concurrent.futures import ThreadPoolExecutor

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
    assert set(told) == {"server-id", "bootstrapped", "default-project-id", "authz-backend", "version", "queues"}
    assert (told["default-project-id"], told["authz-backend"]) == (NIL, "database")
    assert told["queues"] == ["tabular_purge", "task_log_cleanup"]


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
        assert answer.error() == (400, "ServerAlreadyBootstrappedException")
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


def test_bootstrap_as_operator_is_not_served(client: AsgiClient) -> None:
    answer = client.as_user("alice").post(
        "/management/v1/bootstrap", {"accept-terms-of-use": True, "is-operator": True}
    )
    assert answer.status == 400
    assert "'is-operator' is not served" in answer.message()


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
