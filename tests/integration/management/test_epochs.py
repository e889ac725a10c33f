"""Every change of the ledger raises the epoch of its project: a function that is added must be listed here."""

import inspect
from collections.abc import Callable
from types import ModuleType

import pytest

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.ledger import grants, members
from lakewarden.authz.model import Privilege
from lakewarden.context import Caller, PrincipalId, role_principal
from tenants.models import Project

ALICE, ADMIN, READERS = PrincipalId("oidc~alice"), PrincipalId("oidc~admin"), role_principal("readers")
SERVER = [ObjectRef(ObjectType.SERVER, "server")]
LAKE = [*SERVER, ObjectRef(ObjectType.PROJECT, "p"), ObjectRef(ObjectType.WAREHOUSE, "lake")]
SALES, OTHER = ([*LAKE, ObjectRef(ObjectType.NAMESPACE, name)] for name in ("sales", "other"))
ORDERS, NEW = ([*SALES, ObjectRef(ObjectType.TABLE, name)] for name in ("orders", "new"))
SELECT = [(ALICE, Privilege.SELECT)]

CHANGES: dict[str, Callable[[], object]] = {
    "grants.give": lambda: grants.give(ORDERS, [(ALICE, Privilege.WRITE)], granted_by=ADMIN),
    "grants.remove": lambda: grants.remove(ORDERS[-1], SELECT),
    "grants.set_managed": lambda: grants.set_managed(SALES, managed=True, set_by=ADMIN),
    "grants.reparent": lambda: grants.reparent(SALES[-1], before=LAKE, after=OTHER),
    "grants.pass_on": lambda: grants.pass_on(ORDERS[-1], NEW),
    "grants.forget_object": lambda: grants.forget_object(ORDERS[-1]),
    "grants.forget_objects": lambda: grants.forget_objects(ObjectType.TABLE, ["orders"]),
    "grants.forget_principal": lambda: grants.forget_principal(ALICE),
    "grants.forget_project": lambda: grants.forget_project("p"),
    "members.add": lambda: members.add(READERS, [ADMIN], project_id="p", added_by=ADMIN),
    "members.remove": lambda: members.remove(READERS, [ALICE]),
    "members.forget_principal": lambda: members.forget_principal(ALICE),
    "members.forget_project": lambda: members.forget_project("p"),
}
READS = {
    *("grants.on", "grants.given_on", "grants.given_to", "grants.is_managed", "grants.projects_of", "grants.owners_of"),
    *("members.of_role", "members.all_below", "members.roles_of", "members.all_above"),
    *("members.height_above", "members.depth_below"),
}
OF_NOBODY_YET = {"grants.give_creator"}


@pytest.fixture
def filled(database: None) -> None:
    for name in ("other", "p"):
        Project.objects.create(id=name, name=name, name_key=name, authz_epoch=7)
    grants.give(ORDERS, SELECT, granted_by=ADMIN)
    members.add(READERS, [ALICE], project_id="p", added_by=ADMIN)
    Project.objects.update(authz_epoch=7)


def epochs() -> dict[str, int]:
    return dict(Project.objects.values_list("id", "authz_epoch"))


def functions(module: ModuleType) -> set[str]:
    """All public functions that are the module's own."""
    found = inspect.getmembers(module, inspect.isfunction)
    own = [name for name, function in found if function.__module__ == module.__name__ and not name.startswith("_")]
    return {f"{module.__name__.rpartition('.')[2]}.{name}" for name in own}


def test_every_function_of_the_ledger_is_known_here() -> None:
    assert functions(grants) | functions(members) == {*CHANGES, *READS, *OF_NOBODY_YET}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.usefixtures("filled")
def test_a_change_raises_the_epoch_of_its_project(name: str) -> None:
    CHANGES[name]()
    assert epochs()["p"] > 7
    assert epochs()["other"] == 7


@pytest.mark.parametrize("name", ["grants.remove", "grants.forget_principal"])
def test_a_right_on_the_server_that_goes_raises_every_epoch(filled: None, name: str) -> None:
    grants.give(SERVER, SELECT, granted_by=ADMIN)
    grants.remove(ORDERS[-1], SELECT)
    before = epochs()
    grants.remove(SERVER[-1], SELECT) if name == "grants.remove" else CHANGES[name]()
    assert all(now > before[project] for project, now in epochs().items())


@pytest.mark.usefixtures("filled")
def test_what_removes_nothing_and_what_a_creator_gets_raise_none() -> None:
    grants.forget_object(NEW[-1])
    members.remove(READERS, [ADMIN])
    grants.give_creator(NEW, Caller(ALICE))
    assert epochs() == {"p": 7, "other": 7}
