"""The first start, projects, and a warehouse that is created in the browser."""

from html import unescape
from pathlib import Path

import pytest

from tenants.models import Project, Warehouse
from tests.installation import Grant
from tests.integration.console.visitor import Visitor, send
from tests.servers.asgi_client import AsgiClient

NEW = "/console/new-warehouse"


def test_who_signs_in_first_becomes_the_administrator(client: AsgiClient, visitor: Visitor) -> None:
    first, second = visitor("ada"), visitor("mallory")
    assert first.get("/console/warehouses").headers["location"] == "/console/welcome"
    token_page = "/console/welcome"
    late = second.get(token_page)
    assert late.status == 200
    assert send(first, token_page, "/console/welcome/bootstrap").status == 302
    assert "There is no warehouse yet" in first.get("/console/warehouses").body.decode()
    refused = send(second, "/console/projects", "/console/welcome/bootstrap")
    assert refused.status == 400
    assert "bootstrapped already" in unescape(refused.body.decode())
    assert second.get(token_page).status == 302


def test_a_warehouse_is_checked_then_created(admin: AsgiClient, visitor: Visitor, tmp_path: Path) -> None:
    browser = visitor("admin")
    fields = {"type": "local", "warehouse-name": "lake", "base-path": str(tmp_path / "lake"), "days": "3"}
    page = f"{NEW}?type=local"
    checked = send(browser, page, f"{NEW}/check", **fields)
    assert "All checks passed" in checked.body.decode()
    assert not Warehouse.objects.exists()
    assert send(browser, page, f"{NEW}/create", **fields).status == 302
    made = Warehouse.objects.get()
    assert made.name == "lake"
    assert made.delete_profile == {"type": "soft", "expiration-seconds": 3 * 86400}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"base-path": "/etc"}, "storage.local_roots"),
        ({"days": "some"}, "expiration-seconds"),
        ({"base-path": ""}, "base-path"),
        ({"warehouse-name": "a/b"}, "must not contain '/'"),
    ],
)
def test_a_mistake_is_said_and_what_was_typed_stays(
    admin: AsgiClient, visitor: Visitor, tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    fields = {"type": "local", "warehouse-name": "<b>lake</b>", "base-path": str(tmp_path / "lake"), "days": "7"}
    answer = send(visitor("admin"), f"{NEW}?type=local", f"{NEW}/create", **fields | changed)
    shown = answer.body.decode()
    assert answer.status == 200
    assert said in unescape(shown)
    assert "<b>lake" not in shown
    assert not Warehouse.objects.exists()


def test_no_page_shows_a_secret_that_was_typed(admin: AsgiClient, visitor: Visitor) -> None:
    fields = {
        "type": "s3",
        "warehouse-name": "lake",
        "bucket": "b",
        "credential-type": "access-key",
        "credential-access-key-id": "AKIATYPED",
        "credential-secret-access-key": "very-secret",
    }
    for action in ("check", "create"):
        shown = send(visitor("admin"), NEW, f"{NEW}/{action}", **fields).body.decode()
        assert "AKIATYPED" in shown
        assert "very-secret" not in shown


def test_who_may_not_create_warehouses_is_told_so(visitor: Visitor, warehouse: Warehouse, grant: Grant) -> None:
    grant("bob", "modify")
    assert visitor("bob").get(NEW).status == 403
    assert visitor("stranger").get(NEW).status == 404
    for action in ("check", "create"):
        assert send(visitor("bob"), "/console/warehouses", f"{NEW}/{action}", type="local").status == 403


def test_a_new_project_is_shown_at_once(admin: AsgiClient, visitor: Visitor) -> None:
    browser = visitor("admin")
    assert send(browser, "/console/projects", "/console/projects/new", name="Research").status == 302
    assert "Research" in browser.get("/console/warehouses").body.decode()
    again = send(browser, "/console/projects", "/console/projects/new", name="Research")
    assert 'value="Research"' in again.body.decode()
    assert Project.objects.count() == 2


def test_projects_are_created_by_administrators_of_the_server(
    visitor: Visitor, warehouse: Warehouse, grant: Grant
) -> None:
    grant("bob", "modify")
    shown = visitor("bob").get("/console/projects").body.decode()
    assert "Create a project" not in shown
    token_page = "/console/projects"
    answer = send(visitor("bob"), token_page, "/console/projects/new", name="Mine")
    assert "needs the privilege" in unescape(answer.body.decode())
    assert Project.objects.count() == 1
