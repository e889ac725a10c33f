"""Tags as somebody attacks them who holds one half of what is needed, or looks for what they may not see."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections

from catalog.models import TagAttachment
from lakewarden.authz.model import Privilege
from tenants.models import TagDefinition
from tests.integration.catalog.lake import Lake
from tests.integration.management.tagging import DEFINITION, EVE, M, column, defined, give, place, put, tags, take
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def tagged(lake: Lake, admin: AsgiClient) -> Lake:
    """The lake as the administrator sees it: `sales.orders` and `sales.secret` have the tag `pii`, and `sales` too."""
    seen = Lake(admin, lake.warehouse_id)
    for name in ("orders", "secret"):
        assert lake.create_table(name).status == 200
    defined(admin, "pii")
    for name in ("sales", "orders", "secret"):
        assert put(admin, place(seen, name), "pii", f"of {name}").status == 200
    assert put(admin, column(place(seen, "secret"), "id"), "pii", "of secret.id").status == 200
    return seen


def values_seen_by(caller: AsgiClient) -> list[str]:
    definition = TagDefinition.objects.get(name="pii")
    answer = caller.get(f"{DEFINITION}/{definition.id}/attachments")
    assert answer.status == 200, answer.body
    return [each["value"] for each in answer.json()["attachments"]]


def unchanged() -> bool:
    return sorted(str(value) for value in TagAttachment.objects.values_list("value", flat=True)) == [
        *("of orders", "of sales", "of secret", "of secret.id")
    ]


def test_the_right_to_apply_a_tag_is_not_enough(tagged: Lake) -> None:
    """Rights: `apply` on the tag."""
    give("pii", Privilege.APPLY)
    eve = tagged.client.as_user("eve")
    for name in ("", "sales", "orders"):
        for answer in (put(eve, place(tagged, name), "pii", "x"), take(eve, place(tagged, name), "pii")):
            assert answer.status == 404, answer.body
        assert eve.get(f"{place(tagged, name)}/tags").status == 404
    definition = TagDefinition.objects.get()
    assert eve.get(f"{DEFINITION}/{definition.id}").status == 200
    for method, path in (("GET", "/attachments"), ("GET", "/grants"), ("DELETE", "")):
        assert eve.call(method, f"{DEFINITION}/{definition.id}{path}").status == 403
    body = {"name": "mine", "scope": ["table"]}
    assert eve.post(f"{DEFINITION}/{definition.id}", body).status == 403
    grant = {"writes": [{"privilege": "ownership", "principal": {"user": EVE}}]}
    assert eve.post(f"{DEFINITION}/{definition.id}/grants", grant).status == 403
    assert unchanged()


def test_the_right_to_manage_tags_is_not_enough(tagged: Lake) -> None:
    """Rights: `manage_tags` on the namespace."""
    give("sales", Privilege.MANAGE_TAGS)
    eve = tagged.client.as_user("eve")
    for where in (place(tagged, "sales"), place(tagged, "orders"), column(place(tagged, "secret"), "id")):
        assert tags(eve, where)
        for answer in (put(eve, where, "pii", "x"), take(eve, where, "pii")):
            assert answer.status == 403, answer.body
    assert put(eve, place(tagged), "pii", "x").status == 403
    assert eve.post(DEFINITION, {"name": "mine", "scope": ["table"], "value-kind": "marker"}).status == 403
    assert eve.get(tagged.table("orders", "credentials")).status == 403
    assert unchanged()


def test_both_rights_are_enough_where_both_are_held_and_nowhere_else(tagged: Lake) -> None:
    """Rights: `apply` on the tag, `manage_tags` on one table."""
    give("pii", Privilege.APPLY)
    give("orders", Privilege.MANAGE_TAGS)
    eve = tagged.client.as_user("eve")
    assert put(eve, place(tagged, "orders"), "pii", "mine").status == 200
    assert put(eve, place(tagged, "secret"), "pii", "mine").status == 404
    assert put(eve, place(tagged, "sales"), "pii", "mine").status == 403
    assert put(eve, place(tagged), "pii", "mine").status == 403


def test_who_reads_a_table_reads_its_tags_and_changes_none(tagged: Lake) -> None:
    """Rights: `describe` on one table."""
    give("orders", Privilege.DESCRIBE)
    eve = tagged.client.as_user("eve")
    assert tags(eve, place(tagged, "orders"), effective=True) == {"pii": "of orders"}
    assert put(eve, place(tagged, "orders"), "pii", "x").status == 403
    assert take(eve, place(tagged, "orders"), "pii").status == 403
    for path in ("/tags", "/column-tags"):
        assert eve.get(f"{place(tagged, 'secret')}{path}").status == 404
    assert eve.get(f"{column(place(tagged, 'secret'), 'id')}/tags").status == 404
    missing = put(eve, place(tagged, "secret").replace("0", "1"), "pii", "x")
    hidden = put(eve, place(tagged, "secret"), "pii", "x")
    assert (missing.status, missing.json()["error"]["type"]) == (hidden.status, hidden.json()["error"]["type"])
    assert unchanged()


def test_the_owner_of_a_tag_sees_it_only_on_what_they_may_see(tagged: Lake) -> None:
    """Rights: ownership of the tag, then `describe` on one table, then on the namespace."""
    give("pii", Privilege.OWNERSHIP)
    eve = tagged.client.as_user("eve")
    assert values_seen_by(eve) == []
    give("orders", Privilege.DESCRIBE)
    assert values_seen_by(eve) == ["of sales", "of orders"]
    give("secret", Privilege.PASS_GRANTS)
    assert values_seen_by(eve) == ["of sales", "of orders"]
    give("sales", Privilege.SELECT)
    assert values_seen_by(eve) == ["of sales", "of orders", "of secret", "of secret.id"]
    assert values_seen_by(tagged.client) == values_seen_by(eve)


def test_a_search_by_tag_shows_only_what_the_caller_may_see(tagged: Lake) -> None:
    """Rights: `describe` on one table."""
    give("orders", Privilege.DESCRIBE)
    body = {"tag": {"name": "pii"}}
    answer = tagged.client.as_user("eve").post(f"{place(tagged)}/search-tabular", body)
    assert [each["tabular-name"] for each in answer.json()["tabulars"]] == ["orders"]
    secret = {"tag": {"name": "pii", "value": "of secret"}}
    assert tagged.client.as_user("eve").post(f"{place(tagged)}/search-tabular", secret).json() == {"tabulars": []}
    assert tagged.client.as_user("mallory").post(f"{place(tagged)}/search-tabular", body).status == 404


def test_tags_of_another_project_are_like_missing_ones(tagged: Lake) -> None:
    """Rights: everything in a project of their own."""
    project = tagged.client.post(f"{M}/project", {"project-name": "theirs"}).json()["project-id"]
    body = {"writes": [{"privilege": "project_admin", "principal": {"user": EVE}}]}
    eve = tagged.client.as_user("eve")
    assert eve.get(f"{M}/whoami").status == 200
    own = {"x-project-id": project}
    assert tagged.client.call("POST", f"{M}/project/grants", json=body, headers=own).status == 204
    definition = TagDefinition.objects.get()
    for path in ("", "/attachments", "/grants", "/actions"):
        for headers in (own, {}):
            assert eve.call("GET", f"{DEFINITION}/{definition.id}{path}", headers=headers).status == 404
    grant = {"writes": [{"privilege": "apply", "principal": {"user": EVE}}]}
    assert eve.call("POST", f"{DEFINITION}/{definition.id}/grants", json=grant, headers=own).status == 404
    assert eve.call("DELETE", f"{DEFINITION}/{definition.id}", headers=own).status == 404
    assert eve.call("GET", DEFINITION, headers=own).json()["tag-definitions"] == []
    assert put(eve, place(tagged, "orders"), "pii", "x").status == 404
    check = {"operation": {"tag-definition": {"action": "read", "tag-definition-id": str(definition.id)}}}
    assert eve.post(f"{M}/action/batch-check", {"checks": [check]}).json()["results"] == [{"allowed": False}]
    assert unchanged()


def test_registering_over_a_table_keeps_its_tags(tagged: Lake) -> None:
    """Rights: create and modify, as `engine` has them."""
    engine = tagged.as_user("engine")
    before = place(tagged, "secret")
    own = engine.create_table("own").json()["metadata-location"]
    same = engine.load("secret")["metadata-location"]
    for location, columns in ((same, ["of secret.id"]), (own, [])):
        if location == own:
            assert engine.client.delete(engine.table("own", purgeRequested="false")).status == 204
        body = {"name": "secret", "metadata-location": location, "overwrite": True}
        assert engine.client.post(engine.namespace("sales", "register"), body).status == 200
        after = place(tagged, "secret")
        assert tags(tagged.client, after) == {"pii": "of secret"}
        found = tagged.client.get(f"{after}/column-tags").json()["columns"]
        assert [tag["value"] for each in found for tag in each["tags"]] == columns
    assert after != before
    assert TagAttachment.objects.count() == 3


def test_a_revoked_right_is_gone_at_once(tagged: Lake) -> None:
    """Rights: `apply` and `manage_tags`, until they are taken."""
    give("pii", Privilege.APPLY)
    give("orders", Privilege.MANAGE_TAGS)
    eve = tagged.client.as_user("eve")
    assert put(eve, place(tagged, "orders"), "pii", "x").status == 200
    definition = TagDefinition.objects.get()
    body = {"deletes": [{"privilege": "apply", "principal": {"user": EVE}}]}
    assert tagged.client.post(f"{DEFINITION}/{definition.id}/grants", body).status == 204
    assert put(eve, place(tagged, "orders"), "pii", "y").status == 403


def test_a_definition_that_is_deleted_while_it_is_set_is_either_in_use_or_gone(lake: Lake, admin: AsgiClient) -> None:
    """Rights: an administrator, and another one at the same time."""
    seen = Lake(admin, lake.warehouse_id)
    assert lake.create_table("orders").status == 200
    where = place(seen, "orders")

    def in_a_thread(work: str, identifier: str) -> int:
        try:
            answer = put(admin, where, "race", "x") if work == "set" else admin.delete(f"{DEFINITION}/{identifier}")
            return answer.status
        finally:
            connections.close_all()

    seen_pairs = set()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(12):
            identifier = defined(admin, "race")
            both = [pool.submit(in_a_thread, work, identifier) for work in ("set", "delete", "set")]
            first, deleted, second = (each.result() for each in both)
            seen_pairs.add((first, deleted, second))
            is_there = TagDefinition.objects.filter(id=identifier).exists()
            assert TagAttachment.objects.count() == (1 if is_there else 0)
            assert (deleted == 409) == is_there, (first, deleted, second)
            assert {first, second} <= {200, 404}
            take(admin, where, "race")
            admin.delete(f"{DEFINITION}/{identifier}")
    assert connection.is_usable()
    assert seen_pairs
