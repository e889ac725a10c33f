"""The thirteen checks of a storage, on an object store whose keys and faults the test decides."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lakewarden import config
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.storage.profiles import PROFILES
from tenants.access import project_chain
from tenants.models import LeftLocation, Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import storage_trial
from tests.contracts.storage.bucket import HANGING, KEYS, LEAKS, OBJECTS, RELEASED, VERBS, BucketProfile, forget
from tests.installation import ADMIN
from tests.servers.asgi_client import AsgiClient

Report = dict[str, tuple[str, str | None]]
Validate = Callable[..., Report]

SERVER = {"type": "bucket", "credential-type": "key", "name": "server", "secret": "correct horse"}
VENDED = (
    "vended-credentials-issued",
    "vended-credentials-read-write",
    "vended-credentials-scope-enforced",
)


@pytest.fixture
def client(client: AsgiClient) -> AsgiClient:
    """A client that does not know the document: storage of this type is not in it."""
    return AsgiClient(client.headers)


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(PROFILES, "bucket", BucketProfile)
    KEYS["server"] = ("correct horse", VERBS)
    yield
    RELEASED.set()
    for thread in [each for each in threading.enumerate() if each.name == "storage-trial"]:
        thread.join(30)
    forget()


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A second for a validation, and one validation at a time."""
    monkeypatch.setenv("LAKEWARDEN__STORAGE__VALIDATION_TIMEOUT_S", "1")
    monkeypatch.setenv("LAKEWARDEN__STORAGE__MAX_VALIDATIONS_AT_ONCE", "1")
    config.current.cache_clear()
    storage_trial.places.cache_clear()
    yield
    monkeypatch.undo()
    config.current.cache_clear()
    storage_trial.places.cache_clear()


def body(**profile: Any) -> dict[str, Any]:
    kinds = {"type": "bucket", "bucket": "one", "issues-keys": True}
    return {"warehouse-name": "lake", "storage-profile": kinds | profile, "storage-credential": SERVER}


@pytest.fixture
def validate(admin: AsgiClient) -> Validate:
    def call(sent: dict[str, Any] | None = None) -> Report:
        answer = admin.post("/management/v1/warehouse-creation-validation", sent or body())
        assert answer.status == 200, answer.body
        report = answer.json()
        assert len(report["checks"]) == 13
        assert report["valid"] is all(each["status"] != "failed" for each in report["checks"])
        for each in report["checks"]:
            assert ("duration-ms" in each) is (each["status"] != "skipped")
            assert ("error" in each) is (each["status"] == "failed")
        return {each["name"]: (each["status"], each.get("reason")) for each in report["checks"]}

    return call


def failed(report: Report) -> dict[str, str]:
    return {name: str(reason) for name, (status, reason) in report.items() if status == "failed"}


def test_a_good_store_passes_all_checks_that_apply(validate: Validate) -> None:
    report = validate()
    assert failed(report) == {}
    assert {name for name, (status, _) in report.items() if status == "skipped"} == {
        "profile-compatible",
        "spec-mutable",
    }
    assert OBJECTS == {}


def test_a_store_that_issues_nothing_is_tried_as_the_server_only(validate: Validate) -> None:
    report = validate(body(**{"issues-keys": False}))
    assert failed(report) == {}
    for name in VENDED:
        assert report[name] == ("skipped", "this storage profile issues no credentials to engines")


@pytest.mark.parametrize(
    ("key", "check", "words"),
    [
        (
            ("other secret", VERBS),
            "storage-client-initialized",
            "The key 'server' is not known, or its secret is wrong",
        ),
        (("correct horse", VERBS - {"write"}), "lakekeeper-read-write", "The key may not write at bucket://one/"),
        (("correct horse", VERBS - {"read"}), "lakekeeper-read-write", "The key may not read at bucket://one/"),
        (("correct horse", VERBS - {"delete"}), "cleanup", "The key may not delete at bucket://one/"),
    ],
)
def test_keys_that_are_wrong_or_may_do_too_little_are_named(
    validate: Validate, admin: AsgiClient, key: tuple[str, frozenset[str]], check: str, words: str
) -> None:
    KEYS["server"] = key
    found = failed(validate())
    assert set(found) == {check}
    assert words in found[check]
    answer = admin.post("/management/v1/warehouse", body())
    assert answer.error() == (400, "BadRequestException")
    assert words in answer.message()
    assert "correct horse" not in answer.body.decode()
    assert not Warehouse.objects.exists()


def test_a_store_whose_keys_reach_other_tables_is_refused(validate: Validate, admin: AsgiClient) -> None:
    LEAKS.update({"write", "list"})
    found = failed(validate())
    assert set(found) == {"vended-credentials-scope-enforced"}
    assert "can also write a file beside their table, list the folder around their table" in next(iter(found.values()))
    assert admin.post("/management/v1/warehouse", body()).status == 400
    assert OBJECTS == {}
    assert not Warehouse.objects.exists()


@pytest.mark.usefixtures("limited")
def test_a_store_that_hangs_is_given_up_and_takes_one_place(validate: Validate, admin: AsgiClient) -> None:
    HANGING.set()
    report = validate()
    assert failed(report) == {"lakekeeper-read-write": "The storage did not answer within 1 seconds"}
    assert report["cleanup"] == ("skipped", "the storage did not answer")
    # while the store holds that one, no other is begun
    refused = admin.post("/management/v1/warehouse-creation-validation", body())
    assert refused.error() == (503, "ServiceUnavailableException")
    assert "Too many validations" in refused.message()
    HANGING.clear()
    RELEASED.set()
    for thread in [each for each in threading.enumerate() if each.name == "storage-trial"]:
        thread.join(30)
    assert OBJECTS == {}  # what it wrote at last is removed
    assert failed(validate()) == {}


@pytest.mark.usefixtures("limited")
def test_a_creation_on_a_store_that_hangs_is_told_to_come_back(admin: AsgiClient) -> None:
    HANGING.set()
    answer = admin.post("/management/v1/warehouse", body())
    assert answer.error() == (503, "ServiceUnavailableException")
    assert "did not answer within 1 seconds" in answer.message()
    assert not Warehouse.objects.exists()


@pytest.mark.usefixtures("limited")
def test_a_store_that_hangs_is_given_up_while_it_is_asked_what_another_warehouse_left(admin: AsgiClient) -> None:
    project = admin.post("/management/v1/project", {"project-name": "theirs"}).json()["project-id"]
    ledger.give(project_chain(project), [(PrincipalId("oidc~mallory"), Privilege.CREATE)], granted_by=ADMIN)
    mallory = AsgiClient({**admin.as_user("mallory").headers, "x-project-id": project})
    LeftLocation.objects.create(location="bucket://one", project_id=DEFAULT_PROJECT_ID)
    HANGING.set()
    answer = mallory.post("/management/v1/warehouse", body())
    assert answer.error() == (503, "ServiceUnavailableException")
    assert "The storage did not answer in time" in answer.message()
    assert not Warehouse.objects.exists()
    HANGING.clear()
    RELEASED.set()
    for thread in [each for each in threading.enumerate() if each.name == "storage-trial"]:
        thread.join(30)
    assert mallory.post("/management/v1/warehouse", body()).status == 201


@pytest.mark.parametrize(
    ("credential", "words"),
    [
        ({"credential-type": "badge"}, "credential-type is one of 'key' for this storage"),
        ({"type": "s3", "credential-type": "key"}, "type is 'bucket' for this storage"),
        ({"credential-type": "key", "name": "server"}, "secret: Field required"),
        ({"credential-type": "key", "name": 7, "secret": "correct horse"}, "name: Input should be a valid string"),
        ({**SERVER, "token": "correct horse"}, "token is not a known member"),
    ],
)
def test_a_bad_credential_is_refused_with_its_field(validate: Validate, credential: dict[str, Any], words: str) -> None:
    report = validate(body() | {"storage-credential": credential})
    found = failed(report)
    assert set(found) == {"profile-well-formed"}
    assert words in found["profile-well-formed"]
    assert "correct horse" not in str(report)
    assert report["lakekeeper-read-write"][0] == "skipped"
