"""Nobody can get a right that was not granted, on any known way; each refusal is in the audit."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.models import Namespace
from lakewarden.audit.models import AuditEntry
from tests.integration.catalog.lake import SCHEMA, Lake, identifier
from tests.integration.management.town import EVE, FORBIDDEN, M, Town, ok, on
from tests.servers.asgi_client import Answer, AsgiClient


def test_what_is_not_held_is_not_granted(town: Town) -> None:
    call = town.eve.client.post
    with town.refusing():
        for privilege in ("ownership", "manage_grants", "pass_grants", "modify", "select"):
            assert call(f"{town.place('shared')}/grants", on(privilege, EVE)).error() == FORBIDDEN
            assert call(f"{M}/warehouse/{town.warehouse.id}/grants", on(privilege, EVE)).error() == FORBIDDEN
        for privilege in ("project_admin", "security_admin", "data_admin", "modify"):
            assert call(f"{M}/project/grants", on(privilege, EVE)).error() == FORBIDDEN
        older = town.place("shared").replace(M, f"{M}/permissions")
        answer = call(f"{older}/assignments", {"writes": [{"type": "ownership", "user": EVE}]})
        assert answer.error() == FORBIDDEN
        assert call(f"{M}/server/grants", on("operator", EVE)).error() == FORBIDDEN
    with town.refusing("get_metadata"):
        assert call(f"{town.place('closed')}/grants", on("select", EVE)).status == 404


def test_every_refused_grant_is_on_record(town: Town) -> None:
    with town.refusing("POST /management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/grants"):
        assert town.eve.client.post(f"{town.place('shared')}/grants", on("select", EVE)).status == 403
    row = AuditEntry.objects.filter(outcome="denied", actor=EVE).latest("id")
    assert "you may not grant or revoke select" in row.reason


def test_nobody_puts_himself_into_a_role_that_is_not_his(town: Town) -> None:
    members, role = f"{M}/role/{town.auditors}/members", f"{M}/permissions/role/{town.auditors}/assignments"
    with town.refusing("manage_role_assignments"):
        for body in ({"user": EVE}, {"role": town.mine}):
            assert town.eve.client.post(members, {"members": [body]}).error() == FORBIDDEN
        for kind in ("assignee", "ownership"):
            assert town.eve.client.post(role, {"writes": [{"type": kind, "user": EVE}]}).error() == FORBIDDEN
    with town.refusing("update_source_system"):
        source = {"provider-id": "oidc", "source-id": "everybody"}
        assert town.eve.client.call("PUT", f"{M}/role/{town.auditors}/source-system", json=source).error() == FORBIDDEN
    provisioned = {"roles": [{"name": "auditors", "members": [{"user": EVE}]}]}
    with town.refusing("manage_role_assignments"):
        assert town.eve.client.post(f"{M}/role/provision", provisioned).status in {403, 409}


def test_owning_a_role_gives_it_no_rights_and_its_guests_rights_stay_theirs(town: Town) -> None:
    with town.refusing():
        for kind, identity in (("role", town.mine), ("user", EVE)):
            body = on("select", identity, kind)
            assert town.eve.client.post(f"{M}/warehouse/{town.warehouse.id}/grants", body).error() == FORBIDDEN
    before = town.rights()
    ok(town.eve.client.post(f"{M}/role/{town.mine}/members", {"members": [{"role": town.auditors}, {"user": EVE}]}))
    assert town.rights() == before
    as_role = AsgiClient({**town.eve.client.headers, "x-assume-role": town.mine})
    assert as_role.get(town.eve.table("secret", within="closed")).status == 404


@pytest.mark.parametrize("name", ["auditors"])
def test_a_role_is_assumed_by_its_own_only(town: Town, name: str) -> None:
    as_role = AsgiClient({**town.eve.client.headers, "x-assume-role": getattr(town, name)})
    with town.refusing("assume"):
        answer = as_role.get(town.eve.table("secret", within="closed"))
        assert answer.error() == FORBIDDEN
    row = AuditEntry.objects.filter(action="assume").latest("id")
    assert (row.object_type, row.object_id, row.project_id) == ("role", town.auditors, town.warehouse.project_id)


def test_a_role_that_is_deleted_while_it_is_assumed_gives_nothing_any_more(town: Town) -> None:
    ok(town.admin.client.post(f"{M}/role/{town.auditors}/members", {"members": [{"user": EVE}]}))
    as_role = AsgiClient({**town.eve.client.headers, "x-assume-role": town.auditors})
    path = town.eve.table("secret", within="closed")
    assert [as_role.get(path).status for _ in range(2)] == [200, 200]
    ok(town.admin.client.delete(f"{M}/role/{town.auditors}"))
    with town.refusing():
        assert as_role.get(path).error() == (400, "BadRequestException")
        assert town.eve.client.get(path).status == 404


def test_a_deleted_users_old_token_does_nothing(town: Town) -> None:
    path = town.eve.table("own", within="hers")
    assert town.eve.client.get(path).status == 200
    ok(town.admin.client.delete(f"{M}/user/{EVE}"))
    with town.refusing("get_metadata"):
        assert town.eve.client.get(path).status == 404
    with town.refusing():
        assert town.eve.client.get(f"{M}/whoami").error() == FORBIDDEN
        assert town.eve.client.post(f"{M}/user", {}).error() == FORBIDDEN
        assert town.eve.create_namespace("again").status == 404
        assert town.eve.client.get(f"{M}/project-list").json()["projects"] == []
    assert not any(town.rights().values())


def move(town: Town, name: str, *destination: str) -> Answer:
    return town.eve.client.post(f"{town.place(name)}/move", {"destination": destination})


def test_a_namespace_is_not_moved_into_ones_own_area(town: Town) -> None:
    with town.refusing("move"):
        assert move(town, "shared", "hers", "shared").error() == FORBIDDEN
        assert move(town, "closed", "hers", "closed").status == 404
    ok(town.admin.create_namespace("shared", "inner"))
    inner = Namespace.objects.get(path=["shared", "inner"])
    path = f"{M}/warehouse/{town.warehouse.id}/namespace/{inner.id}/move"
    with town.refusing("move"):
        assert town.eve.client.post(path, {"destination": ["hers", "inner"]}).error() == FORBIDDEN
    with town.refusing("accept_moved_namespace"):
        assert move(town, "hers", "closed", "hers").status == 404
        assert move(town, "hers", "shared", "hers").error() == FORBIDDEN


def rename(town: Town, name: str, within: str, to: str, kind: str = "tables") -> Answer:
    body = {"source": identifier(name, within), "destination": identifier(name, to)}
    return town.eve.client.post(town.eve.path(kind, "rename"), body)


def test_a_table_is_not_renamed_into_ones_own_namespace_to_grant_rights_on_it(town: Town) -> None:
    with town.refusing("rename"):
        answer = rename(town, "common", "shared", "hers")
        assert answer.error() == FORBIDDEN
        assert "principals who could grant privileges on this table" in answer.message()
        assert rename(town, "secret", "closed", "hers").status == 404
    ok(town.admin.create_view("report", within="shared"))
    with town.refusing("rename"):
        assert rename(town, "report", "shared", "hers", "views").error() == FORBIDDEN
    with town.refusing("create_table"):
        assert rename(town, "own", "hers", "closed").status == 404
    # where she gains nothing by it she may
    ok(rename(town, "own", "hers", "shared"))
    ok(town.admin.create_namespace("other"))
    for privilege in ("modify", "create"):
        ok(town.admin.client.post(f"{town.place('other')}/grants", on(privilege, EVE)))
    ok(rename(town, "common", "shared", "other"))


def managed(town: Town, name: str, caller: Lake, *, on: bool) -> Answer:
    path = town.place(name).replace(M, f"{M}/permissions")
    return caller.client.post(f"{path}/managed-access", {"managed-access": on})


def test_an_owner_does_not_lift_managed_access(town: Town) -> None:
    ok(managed(town, "hers", town.admin, on=True))
    ok(town.eve.create_table("mine", within="hers"))
    with town.refusing("read_grants"):
        assert managed(town, "hers", town.eve, on=False).error() == FORBIDDEN
    with town.refusing():
        assert town.eve.client.post(f"{town.place('mine')}/grants", on("select", EVE)).error() == FORBIDDEN


def test_an_owner_does_not_rename_a_table_out_of_managed_access(town: Town) -> None:
    ok(managed(town, "hers", town.admin, on=True))
    ok(town.eve.create_table("mine", within="hers"))
    with town.refusing("rename"):
        assert rename(town, "mine", "hers", "shared").error() == FORBIDDEN


def test_a_writer_does_not_lift_protection(town: Town) -> None:
    ok(town.admin.client.post(f"{town.place('secret')}/protection", {"protected": True}))
    ok(town.admin.client.post(f"{town.place('closed')}/grants", on("write", EVE)))
    path = town.eve.table("secret", within="closed")
    assert town.eve.commit("secret", within="closed").status == 200
    with town.refusing("set_protection"):
        assert town.eve.client.post(f"{town.place('secret')}/protection", {"protected": False}).error() == FORBIDDEN
    with town.refusing("drop"):
        assert town.eve.client.delete(path).error() == FORBIDDEN
        assert town.eve.client.delete(f"{path}?force=true").error() == FORBIDDEN
        assert town.eve.client.post(f"{path}/unregister").error() == FORBIDDEN


def test_somebody_elses_metadata_file_is_not_registered(town: Town) -> None:
    """The location is taken; an overwrite needs the right to drop what is there."""
    file = town.admin.load("secret", within="closed")["metadata-location"]
    register = town.eve.namespace("hers", "register")
    with town.refusing():
        for path in (file, file.replace("/metadata/", "/metadata/../metadata/"), file.replace("file:///", "file:////")):
            answer = town.eve.client.post(register, {"name": "stolen", "metadata-location": path})
            assert answer.status in {400, 409}, answer.body
        answer = town.eve.client.post(register, {"name": "own", "metadata-location": file, "overwrite": True})
        assert answer.error()[0] == 409
    assert town.eve.client.get(town.eve.table("own", within="hers")).status == 200


def test_a_view_over_a_hidden_table_shows_nothing_of_it(town: Town) -> None:
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["closed"],
        "representations": [{"type": "sql", "sql": "select * from closed.secret", "dialect": "spark"}],
    }
    body = {"name": "peek", "schema": SCHEMA, "view-version": version, "properties": {}}
    ok(town.eve.client.post(town.eve.namespace("hers", "views"), body))
    with town.refusing("get_metadata"):
        secret = town.eve.table("secret", within="closed")
        assert town.eve.client.get(f"{secret}?referenced-by=hers%1Fpeek").status == 404
    with town.refusing("read_data"):
        assert town.eve.client.get(f"{secret}/credentials?referenced-by=hers%1Fpeek").status == 404
    assert town.admin.load("secret", within="closed")["metadata-location"] not in str(
        town.eve.client.get(town.eve.view("peek", within="hers")).json()
    )


Disguise = Callable[[str, str], str]

DISGUISES: dict[str, Disguise] = {
    "the very place": lambda secret, _: secret,
    "with a slash": lambda secret, _: secret + "/",
    "below": lambda secret, _: f"{secret}/data",
    "above": lambda secret, _: secret.rpartition("/")[0],
    "doubled slashes": lambda secret, _: secret.replace("/closed", "//closed") + "//data",
    "up and down": lambda secret, base: f"{base}/x/../{secret.removeprefix(base + '/')}",
    "percent-encoded dots": lambda secret, base: f"{base}/x/%2e%2e/{secret.removeprefix(base + '/')}",
    "a dot": lambda secret, _: secret.replace(secret.rpartition("/")[2], "./" + secret.rpartition("/")[2]),
    "another host": lambda secret, _: secret.replace("file:///", "file://other/"),
    "a look-alike of the warehouse": lambda _, base: f"{base}b/table",
    "beside the warehouse": lambda _, base: f"{base}/../elsewhere/table",
    "the warehouse itself": lambda _, base: base,
    "an absolute path": lambda _, __: "file:///etc",
    "NUL": lambda secret, _: f"{secret}\x00x",
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_table_is_not_made_where_another_lies_however_the_place_is_written(town: Town, disguise: str) -> None:
    secret = town.admin.load("secret", within="closed")["metadata"]["location"]
    location = DISGUISES[disguise](secret, town.warehouse.location)
    with town.refusing():
        for staged in (False, True):
            answer = town.eve.create_table("fresh", within="hers", location=location, stage_create=staged)
            assert answer.error()[0] in {400, 409}, answer.body
        elsewhere = {"action": "set-location", "location": location}
        assert town.eve.commit("own", elsewhere, within="hers").error()[0] in {400, 409}
    assert town.admin.load("secret", within="closed")["metadata"]["location"] == secret


def test_a_look_alike_of_a_location_is_another_place(town: Town, tmp_path: Path) -> None:
    base = town.warehouse.location
    ok(town.admin.create_table("a", within="closed", location=f"{base}/places/a"))
    ok(town.eve.create_table("ab", within="hers", location=f"{base}/places/ab"))
    with town.refusing():
        assert town.eve.create_table("inside", within="hers", location=f"{base}/places/a/b").status == 409
    # engines do not decode locations: each of these names a place beside the table's
    beside = {"letter": f"{base}/places/%61", "slash": f"{base}/places%2Fa", "query": f"{base}/places/a?x=y"}
    for name, location in beside.items():
        ok(town.eve.create_table(name, within="hers", location=location))
        assert Path(location.removeprefix("file://"), "metadata").is_dir()
    link = Path(base.removeprefix("file://")) / "link"
    link.symlink_to(tmp_path)
    with town.refusing():
        for location in (f"{base}/link", f"{base}/link/table"):
            assert town.eve.create_table("linked", within="hers", location=location).status == 400
