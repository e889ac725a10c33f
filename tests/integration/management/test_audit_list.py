"""`GET /audit` and `GET /server/audit`: who may, filters, pages that hold still, and nothing of another tenant."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewarden.audit import refusals
from lakewarden.audit.decision_buffer import DECISIONS
from lakewarden.audit.entries import Entry, write
from lakewarden.audit.models import AuditEntry
from lakewarden.audit.refusals import PENDING
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.paging import next_token
from tenants import access
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.installation import ADMIN
from tests.servers.asgi_client import AsgiClient

AUDIT, SERVER = "/management/v1/audit", "/management/v1/server/audit"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def nothing_else(admin: AsgiClient) -> None:
    AuditEntry.objects.all().delete()
    PENDING.take()
    DECISIONS.take()


def entry(number: int, *, project_id: str | None = DEFAULT_PROJECT_ID, **other: Any) -> Entry:
    told: dict[str, Any] = {
        "actor": "oidc~ada",
        "action": "get_metadata",
        "object_type": "table",
        "object_id": f"t{number}",
        "outcome": "allowed",
        "request_id": f"r{number}",
    }
    return Entry(at=NOW + timedelta(seconds=number), project_id=project_id, **(told | other))


def ids(caller: AsgiClient, query: str = "", *, path: str = AUDIT) -> list[str]:
    """The objects of the entries of one page."""
    answer = caller.get(f"{path}?{query}")
    assert answer.status == 200, answer.body
    return [each["object-id"] for each in answer.json()["entries"]]


def give(name: str, privilege: Privilege) -> None:
    chain = access.project_chain(DEFAULT_PROJECT_ID)
    ledger.give(chain, [(PrincipalId(f"oidc~{name}"), privilege)], granted_by=ADMIN)
    projects.bump_epoch(DEFAULT_PROJECT_ID)


def test_an_entry_has_all_that_is_known(admin: AsgiClient) -> None:
    role = "0197f1c2-0000-7000-8000-000000000000"
    write([entry(1, assumed_role=role, user_agent="Spark", count=7, details={"privileges": ["describe"]})])
    write([entry(0, project_id=None, outcome="lost", request_id="")])
    (told,) = admin.get(AUDIT).json()["entries"]
    assert told.pop("id") > 0
    assert told == {
        "at": "2026-11-21T12:00:01Z",
        "actor": "oidc~ada",
        "assumed-role": role,
        "action": "get_metadata",
        "object-type": "table",
        "object-id": "t1",
        "project-id": DEFAULT_PROJECT_ID,
        "outcome": "allowed",
        "request-id": "r1",
        "user-agent": "Spark",
        "count": 7,
        "details": {"privileges": ["describe"]},
    }
    (_, lost) = admin.get(SERVER).json()["entries"]
    assert set(lost) == {"id", "at", "actor", "action", "object-type", "object-id", "outcome", "count", "details"}


def test_a_request_and_its_change_are_found_by_the_request_id(admin: AsgiClient) -> None:
    assert admin.post("/management/v1/role", {"name": "ops"}, headers={"x-request-id": "trace-1"}).status == 201
    refusals.flush()
    found = admin.get(f"{AUDIT}?request-id=trace-1").json()["entries"]
    assert {(each["action"], each["outcome"]) for each in found} == {("createRole", "done"), ("create_role", "allowed")}


@pytest.mark.parametrize(
    ("privilege", "status"),
    [
        (Privilege.PROJECT_ADMIN, 200),
        (Privilege.SECURITY_ADMIN, 200),
        (Privilege.DATA_ADMIN, 403),
        (Privilege.MODIFY, 403),
        (None, 404),
    ],
)
def test_who_may_read_the_audit_of_a_project(client: AsgiClient, privilege: Privilege | None, status: int) -> None:
    if privilege is not None:
        give("ann", privilege)
    ann = client.as_user("ann")
    assert ann.get(AUDIT).status == status
    assert ann.get(SERVER).status == 403
    assert client.get(AUDIT).status == client.get(SERVER).status == 401


def test_an_administrator_of_the_server_reads_all(client: AsgiClient) -> None:
    assert client.as_user("admin").get(AUDIT).status == 200
    assert client.as_user("admin").get(SERVER).status == 200


def test_a_hidden_project_answers_as_a_missing_one(stranger: AsgiClient) -> None:
    hidden, gone = stranger.get(AUDIT), stranger.get(AUDIT, headers={"x-project-id": "gone"})
    assert hidden.error() == gone.error() == (404, "NoSuchProjectException")
    assert hidden.message().replace(DEFAULT_PROJECT_ID, "gone") == gone.message()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["t4", "t3", "t2", "t1"]),
        ("actor=oidc~eve", ["t2"]),
        ("action=drop", ["t3"]),
        ("object-type=view", ["t4"]),
        ("object-id=t1", ["t1"]),
        ("outcome=denied", ["t3", "t2"]),
        ("request-id=r4", ["t4"]),
        ("assumed-role=ops", ["t1"]),
        ("outcome=denied&actor=oidc~ada", ["t3"]),
        ("from=2026-11-21T12:00:03Z", ["t4", "t3"]),
        ("from=2026-11-21T13:00:03%2B01:00", ["t4", "t3"]),
        ("from=2026-11-21T13:00:03+01:00", ["t4", "t3"]),
        ("to=2026-11-21T12:00:03Z", ["t2", "t1"]),
        ("from=2026-11-21&to=2026-11-22", ["t4", "t3", "t2", "t1"]),
        ("to=2026-11-21", []),
        ("actor=nobody", []),
    ],
)
def test_filters(admin: AsgiClient, query: str, expected: list[str]) -> None:
    write(
        [
            entry(1, assumed_role="ops"),
            entry(2, actor="oidc~eve", outcome="denied"),
            entry(3, action="drop", outcome="denied"),
            entry(4, object_type="view"),
        ]
    )
    assert ids(admin, query) == expected
    assert ids(admin, query, path=SERVER) == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("outcome=maybe", "outcome='maybe'"),
        ("outcome=", "outcome=''"),
        ("actor=", "actor=''"),
        ("actor=a%00b", "a control character"),
        ("object-id=" + "x" * 1001, "1 to 1000 characters"),
        ("from=yesterday", "from='yesterday'"),
        ("from=", "from=''"),
        ("to=9999-12-31T23:59:59-23:00", "to="),
        ("to=0001-01-01T00:00:00%2B23:00", "to="),
        ("to=%00", "to="),
        ("from=2026-11-22&to=2026-11-21", "swap from and to"),
        ("pageSize=0", "pageSize"),
        ("pageToken=rainbow", "pageToken"),
        (f"pageToken={next_token('rainbow')}", "pageToken"),
        (f"pageToken={next_token('2026-11-21T12:00:00+00:00 99999999999999999999')}", "pageToken"),
        (f"pageToken={next_token('2026-11-21T12:00:00+00:00 -1')}", "pageToken"),
        ("objectid=t1", "Unknown query parameter 'objectid'"),
    ],
)
def test_bad_filters_are_refused(admin: AsgiClient, query: str, message: str) -> None:
    for path in (AUDIT, SERVER):
        answer = admin.get(f"{path}?{query}")
        assert answer.error() == (400, "BadRequestException")
        assert message in answer.message()


def test_filters_of_the_servers_list(admin: AsgiClient) -> None:
    write([entry(1), entry(2, project_id="sea"), entry(3, project_id=None)])
    assert ids(admin, path=SERVER) == ["t3", "t2", "t1"]
    assert ids(admin, "project-id=sea", path=SERVER) == ["t2"]
    assert ids(admin, "without-project=true", path=SERVER) == ["t3"]
    assert ids(admin, "without-project=false", path=SERVER) == ["t3", "t2", "t1"]
    for query in ("without-project=maybe", "without-project=true&project-id=sea", "project-id=%00"):
        assert admin.get(f"{SERVER}?{query}").status == 400
    for query in ("without-project=true", "project-id=sea"):
        assert admin.get(f"{AUDIT}?{query}").status == 400


def test_a_tenant_is_shown_nothing_of_another_or_of_the_server(admin: AsgiClient, client: AsgiClient) -> None:
    assert admin.post("/management/v1/project", {"project-name": "Sea", "project-id": "sea"}).status == 201
    sea = access.project_chain("sea")
    ledger.give(sea, [(PrincipalId("oidc~ann"), Privilege.PROJECT_ADMIN)], granted_by=ADMIN)
    now = datetime.now(UTC)
    for number, project_id in enumerate((DEFAULT_PROJECT_ID, "sea", None)):
        write([Entry(at=now, actor="oidc~ada", action="drop", object_type="table", object_id=f"t{number}",
                     outcome="denied", project_id=project_id, request_id="r")])  # fmt: skip
    ann = AsgiClient({**client.as_user("ann").headers, "x-project-id": "sea"})
    assert ids(ann, "request-id=r") == ["t1"]
    assert ids(ann, "object-id=t0") == ids(ann, "object-id=t2") == []
    assert ann.get(AUDIT, headers={"x-project-id": DEFAULT_PROJECT_ID}).status == 404
    # refusals in another project belong to that project, requests for unknown objects to the server
    warehouse = "/management/v1/warehouse/0197f1c2-0000-7000-8000-000000000000"
    assert ann.get(warehouse).status == 404
    refusals.flush()
    theirs = admin.get(f"{SERVER}?actor=oidc~ann&outcome=denied").json()["entries"]
    assert [each["project-id"] for each in theirs] == [DEFAULT_PROJECT_ID]


def test_who_gets_the_id_of_a_deleted_project_is_shown_nothing_of_it(admin: AsgiClient) -> None:
    body, sea = {"project-name": "Sea", "project-id": "sea"}, {"x-project-id": "sea"}
    assert admin.post("/management/v1/project", body).status == 201
    assert admin.post("/management/v1/role", {"name": "secret"}, headers=sea).status == 201
    refusals.flush()
    assert len(admin.get(AUDIT, headers=sea).json()["entries"]) == 3
    assert admin.delete("/management/v1/project", headers=sea).status == 204
    refusals.flush()
    assert admin.post("/management/v1/project", body).status == 201
    (only,) = admin.get(AUDIT, headers=sea).json()["entries"]
    assert (only["action"], only["outcome"]) == ("createProject", "done")
    assert len(ids(admin, "action=createProject", path=SERVER)) == 2


def _walk(caller: AsgiClient, size: int) -> Iterator[list[int]]:
    token = ""
    while True:
        answer = caller.get(f"{AUDIT}?pageSize={size}&action=get_metadata{token}").json()
        yield [int(each["object-id"][1:]) for each in answer["entries"]]
        if "next-page-token" not in answer:
            return
        token = f"&pageToken={answer['next-page-token']}"


def test_pages_hold_still_while_new_entries_arrive(admin: AsgiClient) -> None:
    # many of the same moment, and over several days
    write([entry(number // 7 * 60, object_id=f"t{number}") for number in range(10_000)])
    seen: list[int] = []
    for number, page in enumerate(_walk(admin, 1000)):
        assert len(page) <= 1000
        seen += page
        write([entry(10_000_000 + number, object_id=f"t{number + 10_000}")])
    assert sorted(seen) == list(range(10_000))
    assert [each // 7 for each in seen] == sorted((each // 7 for each in range(10_000)), reverse=True)


def test_a_page_is_a_hundred_and_a_thousand_at_most(admin: AsgiClient) -> None:
    write([entry(number) for number in range(1001)])
    assert len(ids(admin)) == 100
    assert len(ids(admin, "pageSize=5000")) == 1000
    assert len(ids(admin, "pageSize=2")) == 2
