"""Files that a deleted warehouse left cannot be taken over by creating another warehouse there, in any project."""

import shutil
from pathlib import Path

import pytest

from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants.access import project_chain
from tenants.models.project import DEFAULT_PROJECT_ID
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient

API = "/management/v1"
MALLORY = PrincipalId("oidc~mallory")


@pytest.fixture
def mallory(admin: AsgiClient) -> AsgiClient:
    """Who may create warehouses in a project of their own, and in no other."""
    project = str(admin.post(f"{API}/project", {"project-name": "theirs"}).json()["project-id"])
    give(project, Privilege.CREATE)
    return AsgiClient({**admin.as_user("mallory").headers, "x-project-id": project})


def give(project: str, *privileges: Privilege) -> None:
    ledger.give(project_chain(project), [(MALLORY, each) for each in privileges], granted_by=ADMIN)


@pytest.fixture
def left(lake: Lake, admin: AsgiClient, base: Path) -> Path:
    """The directory of a deleted warehouse, with the files of a table in it."""
    leave_table(lake)
    assert admin.delete(f"{API}/warehouse/{lake.warehouse_id}").status == 204
    return base


def leave_table(lake: Lake) -> None:
    assert lake.create_table("orders").status == 200
    assert lake.client.delete(lake.table("orders", purgeRequested="false")).status == 204
    assert lake.client.delete(lake.namespace("sales")).status == 204


def create(who: AsgiClient, path: Path) -> Answer:
    profile = {"type": "local", "base-path": str(path)}
    return who.post(f"{API}/warehouse", {"warehouse-name": "next", "storage-profile": profile})


@pytest.mark.parametrize("place", [".", "..", "inner"])
def test_files_of_a_deleted_warehouse_are_not_taken_over(left: Path, mallory: AsgiClient, place: str) -> None:
    """Rights: create on another project."""
    inner = next(left.iterdir())
    wanted = inner if place == "inner" else (left / place).resolve()
    answer = create(mallory, wanted)
    assert answer.error() == (409, "AlreadyExistsException")
    assert DEFAULT_PROJECT_ID not in answer.message()


def test_nor_those_that_a_warehouse_has_left_by_moving(
    lake: Lake, admin: AsgiClient, mallory: AsgiClient, base: Path, tmp_path: Path
) -> None:
    """Rights: create on another project."""
    leave_table(lake)
    profile = {"type": "local", "base-path": str(tmp_path / "elsewhere")}
    assert admin.post(f"{API}/warehouse/{lake.warehouse_id}/storage", {"storage-profile": profile}).status == 200
    assert create(mallory, base).status == 409


def test_creating_in_the_same_project_is_not_enough(left: Path, admin: AsgiClient, mallory: AsgiClient) -> None:
    """Rights: create on the project whose warehouse left the files; then also those that taking over the files
    requires.
    """
    give(DEFAULT_PROJECT_ID, Privilege.CREATE)
    here = admin.as_user("mallory")
    assert create(here, left).status == 409
    give(DEFAULT_PROJECT_ID, Privilege.PROJECT_ADMIN)
    assert create(here, left).status == 201


def test_an_empty_place_is_anybodys(left: Path, mallory: AsgiClient) -> None:
    """Rights: create on another project; the files have been removed."""
    shutil.rmtree(left)
    assert create(mallory, left).status == 201


def test_another_name_of_the_same_directory_is_the_same_place(
    admin: AsgiClient, mallory: AsgiClient, tmp_path: Path
) -> None:
    """Rights: create on another project; the other warehouse was made by way of a link."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    assert create(admin, tmp_path / "data" / "lake").status == 201
    assert create(mallory, tmp_path / "disk" / "lake").status == 409
