"""Rights that are lost in other ways than by a revocation, through one server, and checked at once on both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.integration.replicas.pair import SCHEMA, Lake, Pair, Person, Replica

YES, NO = (200, 200), (404, 404)


@dataclass(frozen=True)
class Scene:
    """`reader` may do nothing yet; `sales.orders` and the empty `archive` are in the warehouse."""

    pair: Pair
    lake: Lake
    reader: Person
    sales: str
    archive: str
    orders: str

    def loads(self, namespace: str = "sales", table: str = "orders") -> tuple[int, int]:
        """What both servers answer the reader who loads a table, each asked twice: the second answer counts too."""
        path = self.lake.tables(namespace, table)
        first = self.pair.statuses(self.reader, "GET", path)
        assert self.pair.statuses(self.reader, "GET", path) == first
        return first

    def on_sales(self) -> str:
        return f"{self.lake.managed}/namespace/{self.sales}/grants"

    def on_orders(self) -> str:
        return f"{self.lake.managed}/table/{self.orders}/grants"

    def role(self, *members: dict[str, str]) -> str:
        """The id of a new role with these members."""
        name = f"role-{len(self.pair.a.done('GET', '/management/v1/role?pageSize=1000')['roles'])}"
        identifier = str(self.pair.a.done("POST", "/management/v1/role", {"name": name})["id"])
        self.pair.a.done("POST", f"/management/v1/role/{identifier}/members", {"members": list(members)})
        return identifier

    def let(self, grants: str, principal: dict[str, str], privilege: str = "select") -> None:
        self.pair.a.done("POST", grants, {"writes": [{"privilege": privilege, "principal": principal}]})

    @property
    def himself(self) -> dict[str, str]:
        return {"user": self.reader.id}


@pytest.fixture
def scene(pair: Pair, lake: Lake) -> Iterator[Scene]:
    sales, archive = lake.add_namespace("sales"), lake.add_namespace("archive")
    yield Scene(pair, lake, pair.people[0], sales, archive, lake.add_table("sales", "orders"))
    # for the next test the reader is known again, and has no other rights
    reader = pair.people[0]
    pair.a.ask(pair.admin, "DELETE", f"/management/v1/user/{reader.id}")
    body = {"id": reader.id, "name": reader.name, "user-type": "application"}
    assert pair.a.ask(pair.admin, "POST", "/management/v1/user", body).status == 201


@pytest.fixture(params=["a", "b"])
def through(pair: Pair, request: pytest.FixtureRequest) -> Replica:
    """The server by which the right is lost."""
    return pair.a if request.param == "a" else pair.b


def test_who_is_taken_out_of_a_role_loses_its_rights(scene: Scene, through: Replica) -> None:
    role = scene.role(scene.himself)
    scene.let(scene.on_sales(), {"role": role})
    assert scene.loads() == YES
    through.done("DELETE", f"/management/v1/role/{role}/members/user/{scene.reader.id}")
    assert scene.loads() == NO


def test_a_role_taken_out_of_a_role_takes_its_members_along(scene: Scene, through: Replica) -> None:
    inner = scene.role(scene.himself)
    outer = scene.role({"role": inner})
    scene.let(scene.on_orders(), {"role": outer})
    assert scene.loads() == YES
    through.done("DELETE", f"/management/v1/role/{outer}/members/role/{inner}")
    assert scene.loads() == NO


def test_a_deleted_role_gives_nothing(scene: Scene, through: Replica) -> None:
    role = scene.role(scene.himself)
    scene.let(scene.on_sales(), {"role": role})
    assert scene.loads() == YES
    through.done("DELETE", f"/management/v1/role/{role}")
    assert scene.loads() == NO


def test_who_acts_as_a_role_may_not_when_he_is_taken_out(scene: Scene, through: Replica) -> None:
    role = scene.role(scene.himself)
    scene.let(scene.on_sales(), {"role": role})

    def loads() -> list[int]:
        path = scene.lake.tables("sales", "orders")
        return [each.ask(scene.reader, "GET", path, x_assume_role=role).status for each in scene.pair.both]

    assert [loads(), loads()] == [[200, 200]] * 2
    through.done("DELETE", f"/management/v1/role/{role}/members/user/{scene.reader.id}")
    assert set(loads()) <= {400, 403}


def test_owners_grant_no_more_once_access_is_managed(scene: Scene, through: Replica) -> None:
    scene.let(scene.on_orders(), scene.himself, "ownership")
    gift = {"writes": [scene.pair.people[1].entry("select")]}

    def may_give() -> list[int]:
        return [each.ask(scene.reader, "POST", scene.on_orders(), gift).status for each in scene.pair.both]

    assert may_give() == [204, 204]
    managed = f"/management/v1/permissions/warehouse/{scene.lake.id}/managed-access"
    through.done("POST", managed, {"managed-access": True})
    assert may_give() == [403, 403]
    assert scene.loads() == YES
    through.done("POST", managed, {"managed-access": False})
    assert may_give() == [204, 204]


def test_a_namespace_that_is_moved_loses_what_it_inherited(scene: Scene, through: Replica) -> None:
    inner = scene.lake.add_namespace("sales", "inner")
    scene.lake.add_table("sales\x1finner", "deep")
    scene.let(scene.on_sales(), scene.himself)
    assert scene.loads("sales\x1finner", "deep") == YES
    move = f"{scene.lake.managed}/namespace/{inner}/move"
    through.done("POST", move, {"destination": ["archive", "inner"]})
    assert scene.loads("archive\x1finner", "deep") == NO
    assert scene.loads("sales\x1finner", "deep") == NO
    through.done("POST", move, {"destination": ["sales", "inner"]})
    assert scene.loads("sales\x1finner", "deep") == YES


def test_a_table_that_is_renamed_loses_what_it_inherited(scene: Scene, through: Replica) -> None:
    scene.let(scene.on_sales(), scene.himself)
    assert scene.loads() == YES
    body = {
        "source": {"namespace": ["sales"], "name": "orders"},
        "destination": {"namespace": ["archive"], "name": "orders"},
    }
    through.done("POST", scene.lake.path("tables", "rename"), body)
    assert (scene.loads("archive"), scene.loads("sales")) == (NO, NO)


def test_a_new_table_has_none_of_the_rights_of_one_of_its_name(scene: Scene, through: Replica) -> None:
    scene.let(scene.on_orders(), scene.himself)
    assert scene.loads() == YES
    through.done("DELETE", scene.lake.tables("sales", "orders"))
    assert scene.loads() == NO
    scene.pair.a.done("POST", scene.lake.tables("sales"), {"name": "orders", "schema": SCHEMA})
    assert scene.loads() == NO


def _everything(scene: Scene) -> list[tuple[str, str]]:
    lake = scene.lake
    table = lake.tables("sales", "orders")
    gets = [table, lake.tables("sales"), lake.path("namespaces"), lake.path("namespaces", "sales"), lake.config]
    return [("HEAD", table), *(("GET", path) for path in gets)]


def _after(scene: Scene, loss: Callable[[], object]) -> None:
    """The reader may ask everything on both servers, and nothing after the loss."""
    for _ in range(2):
        for method, path in _everything(scene):
            assert set(scene.pair.statuses(scene.reader, method, path)) <= {200, 204}
    loss()
    for method, path in _everything(scene):
        assert scene.pair.statuses(scene.reader, method, path) == NO, path


def test_nothing_in_an_inactive_warehouse_is_served(scene: Scene, through: Replica) -> None:
    scene.let(f"{scene.lake.managed}/grants", scene.himself)
    _after(scene, lambda: through.done("POST", f"{scene.lake.managed}/deactivate"))
    through.done("POST", f"{scene.lake.managed}/activate")
    assert scene.loads() == YES


def test_a_deleted_user_may_do_nothing(scene: Scene, through: Replica) -> None:
    scene.let(f"{scene.lake.managed}/grants", scene.himself)
    _after(scene, lambda: through.done("DELETE", f"/management/v1/user/{scene.reader.id}"))
