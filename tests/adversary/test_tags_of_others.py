"""Detours to the tags of a table that somebody else tagged: moves, ids of fields, races."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import connections

from lakewarden.authz.model import Privilege
from tests.integration.catalog.lake import Lake, identifier
from tests.integration.catalog.observed import local
from tests.integration.catalog.registering import register
from tests.integration.management.tagging import DEFINITION, EVE, M, column, defined, give, place, put, tags, take
from tests.servers.asgi_client import Answer, AsgiClient


@pytest.fixture
def steward(lake: Lake, admin: AsgiClient) -> Lake:
    """The lake as the administrator sees it: `sales.orders` has the tag `pii`; `sandbox` is another namespace."""
    assert lake.create_table("orders").status == 200
    assert lake.create_namespace("sandbox").status == 200
    defined(admin, "pii")
    seen = Lake(admin, lake.warehouse_id)
    assert put(admin, place(seen, "orders"), "pii", "yes").status == 200
    return seen


def move_to_sandbox(who: Lake) -> Answer:
    move = {"source": identifier("orders"), "destination": identifier("moved", "sandbox")}
    return who.client.post(who.path("tables", "rename"), move)


def test_a_table_is_not_moved_to_where_one_may_remove_its_tags(steward: Lake) -> None:
    """Rights: `modify` on the table, `apply` on the tag, `create` and `manage_tags` in another namespace."""
    give("pii", Privilege.APPLY)
    give("orders", Privilege.MODIFY)
    give("sandbox", Privilege.CREATE)
    give("sandbox", Privilege.MANAGE_TAGS)
    eve = steward.as_user("eve")
    assert take(eve.client, place(steward, "orders"), "pii").status == 403
    refused = move_to_sandbox(eve)
    assert refused.error() == (403, "ForbiddenException")
    assert "set its tags" in refused.message()
    assert tags(steward.client, place(steward, "orders")) == {"pii": "yes"}
    assert move_to_sandbox(steward).status == 204


def test_who_manages_tags_in_both_places_may_move(steward: Lake) -> None:
    """Rights: `modify` on the table, `create` in another namespace, `manage_tags` on both."""
    for name, privilege in (("orders", Privilege.MODIFY), ("sandbox", Privilege.CREATE)):
        give(name, privilege)
        give(name, Privilege.MANAGE_TAGS)
    assert move_to_sandbox(steward.as_user("eve")).status == 204
    assert tags(steward.client, place(steward, "moved")) == {"pii": "yes"}


def test_an_owner_who_grants_themselves_manage_tags_reaches_no_tag_with_it(steward: Lake) -> None:
    """Rights: ownership of the table."""
    give("orders", Privilege.OWNERSHIP)
    eve, where = steward.client.as_user("eve"), place(steward, "orders")
    assert eve.get(f"{M}/whoami").status == 200
    grant = {"writes": [{"privilege": "manage_tags", "principal": {"user": EVE}}]}
    assert eve.post(f"{where}/grants", grant).status == 204
    for answer in (put(eve, where, "pii", "no"), take(eve, where, "pii")):
        assert answer.error() == (403, "ForbiddenException")
        assert "needs the privilege apply" in answer.message()
    assert tags(eve, where) == {"pii": "yes"}


def with_field_ids(steward: Lake, first: int, second: int) -> str:
    """The management path of a table whose columns `id` and `place` have these field ids."""
    created = steward.create_table("numbered").json()
    assert steward.client.delete(steward.table("numbered", purgeRequested="false")).status == 204
    metadata = created["metadata"]
    fields = metadata["schemas"][0]["fields"]
    fields[0]["id"], fields[1]["id"] = first, second
    metadata["last-column-id"] = max(first, second)
    local(created["metadata-location"]).write_text(json.dumps(metadata))
    assert register(steward, "numbered", created["metadata-location"]).status == 200
    return place(steward, "numbered")


def column_values(steward: Lake, where: str) -> dict[str, Any]:
    found = steward.client.get(f"{where}/column-tags").json()["columns"]
    return {each["column-name"]: each["tags"][0]["value"] for each in found}


def test_the_tag_of_one_column_is_not_taken_for_that_of_another(steward: Lake) -> None:
    """Rights: `manage_tags` on a table that was registered with the field id 0, and `apply` on the tag."""
    where = with_field_ids(steward, 0, 1)
    assert put(steward.client, column(where, "place"), "pii", "of 1").status == 200
    assert put(steward.client, column(where, "id"), "pii", "of 0").status == 200
    assert column_values(steward, where) == {"id": "of 0", "place": "of 1"}
    for _ in range(2):
        assert take(steward.client, column(where, "0"), "pii").status == 204
        assert column_values(steward, where) == {"place": "of 1"}


@pytest.mark.parametrize("field_id", [-7, 2**31 - 1])
def test_the_tag_of_a_column_that_is_gone_does_not_hold_its_definition(steward: Lake, field_id: int) -> None:
    """Rights: `modify` on a table, whose column has an unusual field id."""
    where = with_field_ids(steward, field_id, 3)
    assert take(steward.client, place(steward, "orders"), "pii").status == 204
    assert put(steward.client, column(where, "id"), "pii", "x").status == 200
    schema = {"type": "struct", "fields": [{"id": 3, "name": "place", "type": "string", "required": False}]}
    add = {"action": "add-schema", "schema": schema}
    assert steward.commit("numbered", add, {"action": "set-current-schema", "schema-id": -1}).status == 200
    (definition,) = steward.client.get(DEFINITION).json()["tag-definitions"]
    path = f"{DEFINITION}/{definition['id']}"
    (kept,) = steward.client.get(f"{path}/attachments").json()["attachments"]
    assert steward.client.delete(path).status == 409
    assert take(steward.client, column(where, str(kept["target"]["field-id"])), "pii").status == 204
    assert steward.client.delete(path).status == 204


def test_a_filter_that_no_value_can_match_is_refused(steward: Lake) -> None:
    """Rights: ownership of the tag."""
    (definition,) = steward.client.get(DEFINITION).json()["tag-definitions"]
    answer = steward.client.get(f"{DEFINITION}/{definition['id']}/attachments?value=%00")
    assert answer.error() == (400, "BadRequestException")
    assert "U+0000" in answer.message()


def together(*works: Callable[[], Answer]) -> list[Answer]:
    def alone(work: Callable[[], Answer]) -> Answer:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(alone, works))


def test_tags_that_are_set_while_their_table_goes_are_set_or_refused(steward: Lake) -> None:
    """Rights: `manage_tags` and `apply`, while somebody else drops the table, or registers over it."""
    file = steward.load("orders")["metadata-location"]
    client = steward.client
    ends = (
        partial(register, steward, "orders", file, overwrite=True),
        partial(client.delete, steward.table("orders", purgeRequested="false")),
    )
    for end in ends * 4:
        where = place(steward, "orders")
        *changes, ended = together(
            partial(put, client, where, "pii", "1"),
            partial(put, client, column(where, "id"), "pii", "2"),
            partial(take, client, where, "pii"),
            end,
        )
        assert ended.status in {200, 204}
        assert {each.status for each in changes} <= {200, 204, 404}
        if ended.status == 204:
            assert register(steward, "orders", file).status == 200
            assert tags(client, place(steward, "orders")) == {}
