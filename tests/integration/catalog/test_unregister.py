"""`POST …/tables/{table}/unregister`: the table leaves the catalog, its files stay."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.models import Tabular
from lakewarden.authz.ledger.models import Grant as GrantRow
from lakewarden.events.models import OutboxEvent
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.installation import Grant
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded, local
from tests.servers.asgi_client import Answer


def unregister(lake: Lake, name: str, **headers: str) -> Answer:
    return lake.client.post(lake.table(name, "unregister"), headers=headers)


def key() -> dict[str, str]:
    return {"idempotency-key": str(uuid.uuid4())}


def test_unregister_answers_with_the_last_state_and_keeps_the_files(lake: Lake, base: Path, recorded: Recorded) -> None:
    lake.create_table("orders")
    lake.commit("orders", set_properties(big=str(2**63 - 1)))
    before, files = lake.load("orders"), sorted(base.rglob("*.json"))

    told = unregister(lake, "ORDERS").json()

    assert told == {name: before[name] for name in ("metadata-location", "metadata")}
    assert sorted(base.rglob("*.json")) == files
    assert not Tabular.everything.exists()
    assert not GrantRow.objects.filter(object_type="table").exists()
    assert not ProcrastinateJob.objects.exists()
    assert recorded() == ["createTable", "updateTable", "unregisterTable"]
    assert OutboxEvent.objects.order_by("sequence").last().data["metadata-location"] == told["metadata-location"]  # type: ignore[union-attr]


def test_nothing_reaches_an_unregistered_table(lake: Lake, recorded: Recorded) -> None:
    lake.create_table("orders")
    assert unregister(lake, "orders").status == 200
    before = recorded()

    answers = [
        lake.commit("orders", set_properties(a="b")),
        lake.client.get(lake.table("orders")),
        lake.client.delete(lake.table("orders", purgeRequested="true")),
        unregister(lake, "orders"),
    ]

    assert {answer.error() for answer in answers} == {(404, "NoSuchTableException")}
    assert recorded() == before


def test_an_unregistered_table_can_be_registered_again_elsewhere(lake: Lake) -> None:
    before = lake.create_table("orders").json()
    lake.create_namespace("hr")
    file = unregister(lake, "orders").json()["metadata-location"]

    body = {"name": "moved", "metadata-location": file}
    assert lake.client.post(lake.namespace("hr", "register"), body).json() == before
    assert lake.create_table("orders").status == 200


def test_a_view_is_no_table_to_unregister(lake: Lake) -> None:
    lake.create_view("report")
    assert unregister(lake, "report").error() == (404, "NoSuchTableException")
    assert lake.client.head(lake.view("report")).status == 204


def test_a_table_whose_metadata_file_is_gone_stays(lake: Lake) -> None:
    local(lake.create_table("orders").json()["metadata-location"]).unlink()
    assert unregister(lake, "orders").error() == (404, "NotFoundException")
    assert Tabular.everything.count() == 1


def test_unregister_needs_the_right_to_drop_by_force(lake: Lake, grant: Grant) -> None:
    lake.create_table("orders")
    for privilege in ("write", "modify"):
        grant("writer", privilege)
        assert unregister(lake.as_user("writer"), "orders").error() == (403, "ForbiddenException")
    assert unregister(lake.as_user("stranger"), "orders").error()[0] == 404
    assert lake.client.head(lake.table("orders")).status == 204


def test_a_repeated_unregister_is_answered_as_the_first(lake: Lake, recorded: Recorded) -> None:
    lake.create_table("orders", properties={"write.metadata.compression-codec": "gzip"})
    lake.commit("orders", set_properties(a="b"))
    once = key()
    first = unregister(lake, "orders", **once)
    after = recorded()
    lake.create_table("orders")  # the key does not apply to another table with the same name

    second = unregister(lake, "orders", **once)

    assert (second.status, second.body) == (200, first.body)
    assert lake.client.head(lake.table("orders")).status == 204
    assert recorded() == [*after, "createTable"]
    assert unregister(lake, "orders", **key()).status == 200


def test_a_repeated_unregister_tells_nothing_to_who_lost_his_rights(lake: Lake) -> None:
    lake.create_table("orders")
    once = key()
    unregister(lake, "orders", **once)
    GrantRow.objects.filter(principal_id="oidc~engine").delete()
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    assert unregister(lake, "orders", **once).error() == (404, "NoSuchWarehouseException")


def test_commits_that_race_with_unregister_are_in_its_answer_or_fail(lake: Lake) -> None:
    lake.create_table("orders")

    def work(number: int) -> Answer:
        if number == 4:
            return unregister(lake, "orders")
        return lake.commit("orders", set_properties(**{f"p{number}": "1"}))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(work, range(8)))

    told = answers[4].json()["metadata"]["properties"]
    for number, answer in enumerate(answers):
        if number != 4:
            assert answer.status in {200, 404}
            assert (f"p{number}" in told) == (answer.status == 200)
