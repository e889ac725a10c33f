"""Administrators of the server describe users anew and delete them; the second of two sees what the first did."""

import re

import pytest

from tenants.models import User, Warehouse
from tests.installation import Grant
from tests.integration.console.visitor import Visitor, send, text_of
from tests.servers.asgi_client import AsgiClient

PAGE = "/console/user?id=oidc~alice"
ALICE = {"id": "oidc~alice", "name": "Alice", "email": "", "type": "human"}


@pytest.fixture
def seen(admin: AsgiClient, visitor: Visitor) -> str:
    """The mark of the page of alice."""
    admin.post("/management/v1/user", {"id": "oidc~alice", "name": "<b>Al", "user-type": "human"})
    page = visitor("admin").get(PAGE).body.decode()
    assert "<b>Al" not in page
    return str(re.findall(r'name="seen" value="(\w+)"', page)[0])


def test_a_user_is_described_and_deleted(visitor: Visitor, seen: str) -> None:
    browser, describe = visitor("admin"), "/console/user/description"
    wrong = send(browser, PAGE, describe, **ALICE | {"seen": seen, "type": "robot"})
    assert "one of human, application is expected" in text_of(wrong)
    assert send(browser, PAGE, describe, **ALICE | {"seen": seen, "email": "alice@example.org"}).status == 302
    found = User.objects.get(id="oidc~alice")
    assert (found.name, found.email) == ("Alice", "alice@example.org")
    late = send(visitor("admin"), PAGE, describe, **ALICE | {"seen": seen, "name": "Alicia"})
    assert "(Alice, alice@example.org, human), so what you typed was not saved yet" in text_of(late)
    assert 'value="Alicia"' in late.body.decode(), "what was typed stays"
    assert "nothing was deleted" in text_of(send(browser, PAGE, "/console/user/deletion", id=found.id, typed="Alice"))
    assert send(browser, PAGE, "/console/user/deletion", id=found.id, typed=found.id).status == 302
    assert browser.get(PAGE).status == 404


def test_nobody_else_sees_or_changes_users(visitor: Visitor, warehouse: Warehouse, grant: Grant, seen: str) -> None:
    grant("bob", "ownership")
    browser = visitor("bob")
    assert browser.get(PAGE).status == browser.get("/console/user?id=oidc~missing").status == 404
    assert send(browser, "/console/design", "/console/user/description", **ALICE | {"seen": seen}).status == 404
    assert browser.get("/console/user?id=%00").status == 404
