"""What others may do to generic tables, and what generic tables may do to others: locations, names and purges."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from django.db import connections
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.access import namespace_chain, tabular_chain
from catalog.models import Deletion, Namespace, Tabular
from catalog.services.deletion.expire import expire_deletion
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants.services import projects
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake, identifier
from tests.integration.tasks.purges import run, sql
from tests.servers.asgi_client import Answer, AsgiClient

MISSING = "0197f1c2-0000-7000-8000-000000000000"


@pytest.fixture
def birds(lake: Lake) -> Tabular:
    """The victim's generic table `sales.birds`."""
    assert lake.create_generic("birds", doc="secret birds").status == 200
    return Tabular.objects.select_related("namespace__warehouse__project").get(name="birds")


def give(target: Namespace | Tabular, name: str, *privileges: Privilege) -> None:
    chain = namespace_chain(target) if isinstance(target, Namespace) else tabular_chain(target)
    ledger.give(chain, [(PrincipalId(f"oidc~{name}"), each) for each in privileges], granted_by=ADMIN)
    namespace = target if isinstance(target, Namespace) else target.namespace
    projects.bump_epoch(namespace.warehouse.project_id)


def rename_route(lake: Lake) -> str:
    return lake.path("generic-tables", "rename").replace("/catalog", "/generic", 1)


def test_who_sees_nothing_cannot_tell_that_it_exists(lake: Lake, birds: Tabular, outsider: Lake) -> None:
    """Rights: create in another namespace."""
    inside = "sales"
    for name in ("birds", "gulls"):
        for rest in ((name,), (name, "credentials")):
            answer = outsider.client.get(outsider.generic(*rest, within=inside))
            assert answer.error() == (404, "NoSuchGenericTableException")
            assert answer.message() == f"Generic table does not exist: sales.{name}"
        assert outsider.client.delete(outsider.generic(name, within=inside)).status == 404
        move = {"source": identifier(name), "destination": identifier("mine", "outside")}
        assert outsider.client.post(rename_route(outsider), move).error() == (404, "NoSuchGenericTableException")
    routes = ("actions", "grants", "protection", "explanation?action=drop", "who-may?action=drop")
    for each in routes:
        told = [
            outsider.client.get(f"/management/v1/warehouse/{lake.warehouse_id}/generic-table/{object_id}/{each}")
            for object_id in (str(birds.uuid), MISSING)
        ]
        assert [answer.status for answer in told] == [404, 404], each
        assert told[0].message().replace(str(birds.uuid), MISSING) == told[1].message()
    search = f"/management/v1/warehouse/{lake.warehouse_id}/search-tabular"
    for text in ("birds", str(birds.uuid)):
        assert outsider.client.post(search, {"search": text}).json() == {"tabulars": []}


def test_a_right_on_one_shows_that_one_alone(lake: Lake, birds: Tabular) -> None:
    """Rights: describe on one generic table."""
    assert lake.create_generic("owls").status == 200
    assert lake.create_table("orders").status == 200
    give(birds, "looker", Privilege.DESCRIBE)
    looker = lake.as_user("looker")
    listed = looker.client.get(looker.generic()).json()["identifiers"]
    assert [each["name"] for each in listed] == ["birds"]
    assert looker.client.get(looker.generic("birds")).status == 200
    assert looker.client.get(looker.generic("owls")).status == 404
    assert looker.client.get(looker.namespace("sales", "tables")).json()["identifiers"] == []
    assert looker.client.get(looker.generic("birds", "credentials")).status == 403
    assert looker.client.delete(looker.generic("birds")).status == 403
    assert looker.create_generic("mine").status == 403


def test_a_rename_needs_the_right_to_create_at_its_target(lake: Lake, birds: Tabular, outsider: Lake) -> None:
    """Rights: modify on a generic table, and nothing on the namespace that it is moved to."""
    give(birds, "mover", Privilege.MODIFY)
    mover = lake.as_user("mover")
    for target in ("outside", "nowhere"):
        move = {"source": identifier("birds"), "destination": identifier("mine", target)}
        answer = mover.client.post(rename_route(mover), move)
        assert answer.error() == (404, "NoSuchNamespaceException"), target
    # a move to where others could grant rights on it, which they may not now
    give(Namespace.objects.select_related("warehouse__project").get(path=["outside"]), "mover", Privilege.CREATE)
    give(Namespace.objects.select_related("warehouse__project").get(path=["outside"]), "boss", Privilege.MANAGE_GRANTS)
    move = {"source": identifier("birds"), "destination": identifier("mine", "outside")}
    assert mover.client.post(rename_route(mover), move).status == 403
    assert lake.client.get(lake.generic("birds")).status == 200


def test_the_files_of_others_are_not_claimed_by_a_new_one(lake: Lake, birds: Tabular, outsider: Lake) -> None:
    """Rights: create in another namespace."""
    table = lake.create_table("orders").json()["metadata"]["location"]
    namespace = Namespace.objects.get(path=["sales"]).properties["location"]
    gone = lake.create_table("gone").json()["metadata"]["location"]
    assert lake.client.delete(lake.table("gone", purgeRequested="false")).status == 204
    taken = [birds.location, f"{birds.location}/inner", table, f"{table}/data", namespace, gone]
    taken += [f"{namespace}/free", f"{namespace}/x/../{birds.location.rpartition('/')[2]}"]
    for location in taken:
        answer = outsider.create_generic("mine", within="outside", base_location=location)
        assert answer.status in {400, 409}, location
        assert "birds" not in answer.message()
    staged = lake.create_table("later", stage_create=True).json()["metadata"]["location"]
    assert outsider.create_generic("mine", within="outside", base_location=staged).status == 409
    assert lake.create_table("late", location=birds.location).status == 409
    assert lake.create_view("late", location=f"{birds.location}/view").status == 409


def test_a_purge_removes_its_own_files_alone(lake: Lake, birds: Tabular, base: Path, tmp_path: Path) -> None:
    """Rights: write files at one generic table's location, where links lead out of it."""
    kept = lake.create_generic("birds2").json()["table"]["base-location"]
    own = Path(birds.location.removeprefix("file://"))
    other = Path(kept.removeprefix("file://"))
    outside = tmp_path / "outside"
    for folder in (own / "data", other, outside):
        folder.mkdir(parents=True)
        (folder / "file.lance").write_text("rows")
    (own / "link").symlink_to(outside)
    (own / "up").symlink_to(other)
    assert lake.client.delete(lake.generic("birds", purgeRequested="true")).status == 204
    ((task, kind),) = sql("select id, entity_type from task where lock = %s", birds.location)
    assert kind == "generic-table"
    run(task)
    assert not own.exists()
    assert (outside / "file.lance").read_text() == (other / "file.lance").read_text() == "rows"


def test_a_tree_that_holds_one_is_dropped_restored_and_expires_with_it(
    lake: Lake, birds: Tabular, admin: AsgiClient
) -> None:
    """Rights: modify on the warehouse."""
    management = f"/management/v1/warehouse/{lake.warehouse_id}"
    profile = {"delete-profile": {"type": "soft", "expiration-seconds": 3600}}
    assert admin.post(f"{management}/delete-profile", profile).status == 200
    refused = lake.client.delete(lake.namespace("sales"))
    assert refused.error() == (409, "NamespaceNotEmptyException")
    protection = f"{management}/generic-table/{birds.uuid}/protection"
    assert admin.post(protection, {"protected": True}).json()["protected"] is True
    assert lake.client.get(lake.generic("birds")).json()["table"]["protected"] is True
    assert lake.client.delete(lake.generic("birds")).error() == (409, "ProtectedException")
    tree = lake.client.delete(lake.namespace("sales", recursive="true"))
    assert "generic table sales.birds" in tree.message()
    assert admin.post(protection, {"protected": False}).status == 200
    assert lake.client.delete(lake.generic("birds")).status == 204
    (listed,) = lake.client.get(f"{management}/deleted-tabulars").json()["tabulars"]
    assert (listed["typ"], listed["id"]) == ("generic-table", str(birds.uuid))
    undrop = {"targets": [{"type": "generic-table", "id": str(birds.uuid)}]}
    for wrong in ("table", "view"):
        answer = admin.post(
            f"{management}/deleted-tabulars/undrop", {"targets": [{**undrop["targets"][0], "type": wrong}]}
        )
        assert answer.status == 404
    assert admin.post(f"{management}/deleted-tabulars/undrop", undrop).status == 204
    assert lake.client.get(lake.generic("birds")).json()["table"]["doc"] == "secret birds"
    assert lake.client.delete(lake.namespace("sales", recursive="true")).status == 204
    assert lake.client.get(lake.generic("birds")).status == 404
    Deletion.objects.update(expires_at="2020-01-01T00:00:00Z")
    assert expire() == 2  # the namespace and the generic table
    assert sql("select count(*) from generic_table") == [(0,)]
    (event,) = sql("select object_id from outbox_event where type = 'expireGenericTable'")
    assert event == (str(birds.uuid),)
    ((lock,),) = sql("select lock from task where queue_name = 'tabular_purge'")
    assert lock == birds.location


def expire() -> int:
    return sum(expire_deletion(**job.args) for job in ProcrastinateJob.objects.filter(task_name="expire_deletion"))


def test_who_sees_only_the_namespace_sees_nothing_in_it(lake: Lake, birds: Tabular) -> None:
    """Rights: pass_grants on the namespace."""
    give(birds.namespace, "maker", Privilege.PASS_GRANTS)
    maker = lake.as_user("maker")
    assert maker.client.get(maker.generic()).json()["identifiers"] == []
    assert maker.client.get(maker.generic("birds")).status == 404
    # a name that is taken is not a secret from those who may create, only from others
    for name in ("birds", "gulls"):
        assert maker.create_generic(name).error() == (403, "ForbiddenException")


def test_a_name_that_all_kinds_want_at_once_is_given_to_one(lake: Lake) -> None:
    """Rights: create and modify in the namespace."""

    def status(work: partial[Answer]) -> int:
        try:
            return work().status
        finally:
            connections.close_all()

    for turn in range(4):
        name = f"wanted{turn}"
        for create, own in ((lake.create_table, "table"), (lake.create_generic, "generic")):
            assert create(f"{own}{turn}").status == 200
        moves = (lake.path("tables", "rename"), "table"), (rename_route(lake), "generic")
        works = [
            partial(lake.create_table, name),
            partial(lake.create_view, name),
            partial(lake.create_generic, name.upper()),
            *(
                partial(
                    lake.client.post, route, {"source": identifier(f"{own}{turn}"), "destination": identifier(name)}
                )
                for route, own in moves
            ),
        ]
        with ThreadPoolExecutor(len(works)) as pool:
            *refused, done = sorted(pool.map(status, works), reverse=True)
        assert refused == [409] * 4
        assert done in {200, 204}
