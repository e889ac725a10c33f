"""The vocabulary of tags: what a definition may be, how it changes, and when it may go."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger.models import Grant
from lakewarden.events.models import OutboxEvent
from tenants.models import Project
from tests.integration.management.tagging import DEFINITION, M, define, defined
from tests.servers.asgi_client import AsgiClient

GONE = "0197f1c2-0000-7000-8000-000000000000"


def test_a_new_definition_is_owned_by_its_maker_and_told_as_it_was_given(admin: AsgiClient) -> None:
    answer = define(
        admin,
        "pii.class",
        kind="enumerated",
        allowed_values=["high", "low"],
        scope=["column", "table"],
        description="x",
    )
    told = answer.json()
    identifier = told["id"]
    assert answer.status == 201
    assert told.pop("created-at")
    assert told == {
        "id": identifier,
        "name": "pii.class",
        "description": "x",
        "scope": ["table", "column"],
        "value-kind": "enumerated",
        "allowed-values": ["high", "low"],
    }
    assert admin.get(f"{DEFINITION}/{identifier}").json() == answer.json()
    owner = Grant.objects.get(object_type="tag-definition", object_id=identifier)
    assert (owner.principal_id, owner.privilege) == ("oidc~admin", "ownership")
    assert OutboxEvent.objects.get(type="createTagDefinition").object_id == identifier
    assert AuditEntry.objects.filter(action="createTagDefinition", outcome="done").count() == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 256}, "at most 255"),
        ({"name": "a..b"}, "must not be empty"),
        ({"name": ".a"}, "must not be empty"),
        ({"name": "a. b"}, "begin or end with a space"),
        ({"name": "a/b"}, "without '/'"),
        ({"name": "a\tb"}, "control character"),
        ({"name": "admin\u202etxt"}, "visible characters"),
        ({"scope": []}, "scope"),
        ({"scope": ["planet"]}, "'planet' is not known"),
        ({"value-kind": "number"}, "'number' is not known"),
        ({"value-kind": "marker", "allowed-values": ["x"]}, "no allowed values"),
        ({"value-kind": "enumerated"}, "at least one allowed value"),
        ({"value-kind": "enumerated", "allowed-values": []}, "at least one allowed value"),
        ({"value-kind": "enumerated", "allowed-values": ["x", "x"]}, "more than once"),
        ({"value-kind": "enumerated", "allowed-values": ["x" * 257]}, "tags.max_value_length"),
        ({"value-kind": "enumerated", "allowed-values": [" "]}, "it is empty"),
        ({"value-kind": "enumerated", "allowed-values": ["a\nb"]}, "cannot be stored"),
        ({"value-kind": "enumerated", "allowed-values": [str(n) for n in range(1001)]}, "tags.max_allowed_values"),
        ({"description": "x" * 2001}, "description"),
        ({"colour": "red"}, "unknown member 'colour'"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else None,
)
def test_a_definition_that_cannot_be_is_refused_with_the_reason(
    admin: AsgiClient, body: dict[str, Any], message: str
) -> None:
    answer = admin.post(DEFINITION, {"name": "pii", "scope": ["table"], "value-kind": "free-text", **body})
    assert answer.status == 400, answer.body
    assert message in answer.message()
    assert admin.get(DEFINITION).json()["tag-definitions"] == []


@pytest.mark.parametrize(
    "name", ["<b>pii<b onclick=x>", "סוד.אישי", "PII 😀 'x'; drop table", "a%2Fb", "Ünï", "x" * 255]
)
def test_names_of_any_writing_are_kept_and_found_ignoring_case(admin: AsgiClient, name: str) -> None:
    identifier = defined(admin, name)
    assert admin.get(f"{DEFINITION}/{identifier}").json()["name"] == name
    assert define(admin, name.swapcase()).error() == (409, "AlreadyExistsException")
    listed = admin.get(f"{DEFINITION}?{urlencode({'name': name.swapcase()})}").json()
    assert ([each["id"] for each in listed["tag-definitions"]], "next-page-token" in listed) == ([identifier], False)


def test_the_list_comes_in_pages_by_name_and_costs_as_much_for_many(admin: AsgiClient) -> None:
    for number in range(30):
        defined(admin, f"tag-{number:02}", kind="enumerated", allowed_values=["a"])
    with CaptureQueriesContext(connection) as few:
        first = admin.get(f"{DEFINITION}?pageSize=2").json()
    with CaptureQueriesContext(connection) as many:
        rest = admin.get(f"{DEFINITION}?pageSize=100&pageToken={first['next-page-token']}").json()
    names = [each["name"] for each in (*first["tag-definitions"], *rest["tag-definitions"])]
    assert names == [f"tag-{number:02}" for number in range(30)]
    assert "allowed-values" not in first["tag-definitions"][0]
    assert (len(first["tag-definitions"]), "next-page-token" in rest) == (2, False)
    assert len(many) == len(few)


def test_a_scope_can_only_be_widened_and_values_only_be_added(admin: AsgiClient) -> None:
    identifier = defined(admin, "level", kind="enumerated", allowed_values=["low"], scope=["table"])
    where = f"{DEFINITION}/{identifier}"
    told = admin.post(
        where, {"name": "Level", "scope": ["view", "table"], "add-allowed-values": ["high", "low"]}
    ).json()
    assert (told["name"], told["scope"], told["allowed-values"]) == ("Level", ["table", "view"], ["low", "high"])
    assert told["updated-at"]
    narrower = admin.post(where, {"name": "Level", "scope": ["view"]})
    assert narrower.status == 400
    assert "table is missing" in narrower.message()
    assert admin.post(where, {"name": "Level", "scope": ["table", "view"], "value-kind": "marker"}).status == 400
    event = OutboxEvent.objects.get(type="updateTagDefinition")
    assert event.data["fields"] == ["name", "scope", "allowed-values"]
    admin.post(where, {"name": "Level", "scope": ["table", "view"]})
    assert OutboxEvent.objects.filter(type="updateTagDefinition").count() == 1


def test_values_are_added_only_to_a_tag_that_has_some(admin: AsgiClient) -> None:
    identifier = defined(admin, "note")
    body = {"name": "note", "scope": ["warehouse", "namespace", "table", "view", "generic-table", "column"]}
    answer = admin.post(f"{DEFINITION}/{identifier}", {**body, "add-allowed-values": ["x"]})
    assert answer.status == 400
    assert "Only a tag of the kind enumerated" in answer.message()


def test_a_name_that_is_taken_meanwhile_is_a_conflict(admin: AsgiClient) -> None:
    defined(admin, "one")
    two = defined(admin, "two", scope=["table"])
    answer = admin.post(f"{DEFINITION}/{two}", {"name": "ONE", "scope": ["table"]})
    assert answer.error() == (409, "AlreadyExistsException")


def test_an_unused_definition_is_deleted_with_the_rights_on_it(admin: AsgiClient) -> None:
    identifier = defined(admin, "pii")
    entry = {"privilege": "apply", "principal": {"user": "oidc~admin"}}
    assert admin.post(f"{DEFINITION}/{identifier}/grants", {"writes": [entry]}).status == 204
    assert admin.delete(f"{DEFINITION}/{identifier}").status == 204
    assert admin.get(f"{DEFINITION}/{identifier}").error() == (404, "NoSuchTagDefinitionException")
    assert not Grant.objects.filter(object_type="tag-definition").exists()
    assert OutboxEvent.objects.get(type="deleteTagDefinition").data == {"name": "pii"}
    defined(admin, "pii")


@pytest.mark.parametrize("identifier", [GONE, "pii", "%00"])
def test_a_definition_that_is_not_there_is_not_found(admin: AsgiClient, identifier: str) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/attachments"), ("GET", "/actions"), ("GET", "/grants")):
        answer = admin.call(method, f"{DEFINITION}/{identifier}{path}")
        assert answer.status == 404, (method, path, answer.body)


def test_a_project_goes_with_its_definitions(admin: AsgiClient) -> None:
    project = admin.post(f"{M}/project", {"project-name": "other"}).json()["project-id"]
    answer = admin.call(
        "POST",
        DEFINITION,
        json={"name": "pii", "scope": ["table"], "value-kind": "marker"},
        headers={"x-project-id": project},
    )
    assert answer.status == 201
    assert admin.delete(f"{M}/project/{project}").status == 204
    assert not Project.objects.filter(id=project).exists()


def test_grants_actions_and_checks_know_definitions(admin: AsgiClient, client: AsgiClient) -> None:
    identifier = defined(admin, "pii")
    where = f"{DEFINITION}/{identifier}"
    assert client.as_user("alice").get(f"{where}/actions").status == 404
    entry = {"privilege": "apply", "principal": {"user": "oidc~alice"}}
    assert client.as_user("alice").get(f"{M}/whoami").status == 200
    assert admin.post(f"{where}/grants", {"writes": [entry]}).status == 204
    alice = client.as_user("alice")
    actions = [each["action"] for each in alice.get(f"{where}/actions").json()["allowed-actions"]]
    assert actions == ["apply", "read", "remove"]
    of_alice = admin.get(f"{where}/actions?principalUser=oidc~alice").json()
    assert [each["action"] for each in of_alice["allowed-actions"]] == actions
    granted = admin.get(f"{where}/grants").json()["grants"]
    assert {each["privilege"] for each in granted} == {"apply", "ownership"}
    assert granted[0]["resource"] == {"type": "tag-definition", "tag-definition-id": identifier}
    assigned = admin.get(f"{M}/permissions/tag/{identifier}/assignments").json()["assignments"]
    assert {"type": "apply", "user": "oidc~alice"} in assigned
    checks = [
        {"operation": {"tag-definition": {"action": action, "tag-definition-id": identifier}}}
        for action in ("apply", "delete")
    ]
    results = alice.post(f"{M}/action/batch-check", {"checks": checks}).json()["results"]
    assert [each["allowed"] for each in results] == [True, False]
    assert alice.get(f"{where}/explanation?action=apply").json()["allowed"] is True
