"""The credential of a warehouse's storage through the management API: creation, update, and what answers show of it."""

import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from lakewarden import backends
from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from lakewarden.secrets.interface import SecretsNotConfigured, SecretsUnavailable
from lakewarden.storage.interface import Storage
from lakewarden.storage.profiles import PROFILES
from tenants.models import Warehouse
from tests.contracts.storage.bucket import KEYS, OBJECTS, VERBS, BucketProfile, BucketStorage, forget
from tests.installation import Grant
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.tasks.purges import run, sql
from tests.servers.asgi_client import Answer, AsgiClient

Change = Callable[..., Answer]

PROFILE = {"type": "bucket", "bucket": "one", "key-prefix": "lake"}
FIRST = {"type": "bucket", "credential-type": "key", "name": "first", "secret": "first secret"}
SECOND = {"type": "bucket", "credential-type": "key", "name": "second", "secret": "second secret"}
AT = "/management/v1/warehouse"


@pytest.fixture
def client(client: AsgiClient) -> AsgiClient:
    """A client that does not know the document: storage of this type is not in it."""
    return AsgiClient(client.headers)


@pytest.fixture
def warehouse(admin: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """In a bucket, with the first of two keys."""
    monkeypatch.setitem(PROFILES, "bucket", BucketProfile)
    KEYS.update(first=("first secret", VERBS), second=("second secret", VERBS))
    answer = admin.post(AT, created("lake"))
    assert answer.status == 201, answer.body
    yield Warehouse.objects.get()
    forget()


def created(name: str, credential: Any = FIRST, **profile: Any) -> dict[str, Any]:
    return {"warehouse-name": name, "storage-profile": {**PROFILE, **profile}, "storage-credential": credential}


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


@pytest.fixture
def change(admin: AsgiClient, warehouse: Warehouse) -> Change:
    def call(what: str, body: Any = None, *, by: AsgiClient = admin) -> Answer:
        return by.post(f"{AT}/{warehouse.id}/{what}", body)

    return call


def secrets() -> set[UUID]:
    return {reference for reference, _ in backends.secrets().references()}


def reference() -> UUID | None:
    return Warehouse.objects.get().storage_secret


def test_a_warehouse_is_told_with_the_kind_of_its_credential_and_nothing_else(
    admin: AsgiClient, warehouse: Warehouse
) -> None:
    for told in (admin.get(f"{AT}/{warehouse.id}").json(), admin.get(AT).json()["warehouses"][0]):
        assert told["storage-credential-type"] == {"type": "bucket", "credential-type": "key"}
        assert told["storage-profile"] == {**PROFILE, "endpoint": "http://one", "issues-keys": False}
    assert secrets() == {warehouse.storage_secret}
    profile = admin.get(f"{AT}/{warehouse.id}").json()["storage-profile"]
    again = admin.post(AT, created("copy") | {"storage-profile": {**profile, "key-prefix": "copy"}})
    assert again.json()["storage-profile"] == {**profile, "key-prefix": "copy"}


def test_another_spelling_of_a_members_name_is_accepted(admin: AsgiClient, warehouse: Warehouse) -> None:
    older = {"credential-type": "key", "name": "first", "bucket-secret": "first secret"}
    assert admin.post(AT, created("other", older, bucket="two")).status == 201


@pytest.mark.parametrize("body", [created("lake", bucket="two"), created("other"), created("a/b", bucket="two")])
def test_a_creation_that_is_refused_keeps_no_secret(
    admin: AsgiClient, warehouse: Warehouse, body: dict[str, Any]
) -> None:
    assert admin.post(AT, body).status in {400, 409}
    assert secrets() == {warehouse.storage_secret}
    assert OBJECTS == {}


def test_new_keys_serve_the_next_request_and_the_old_ones_are_forgotten(change: Change, lake: Lake) -> None:
    before = reference()
    assert lake.create_table("orders").status == 200
    answer = change("storage-credential", {"new-storage-credential": SECOND})
    assert answer.status == 200, answer.body
    assert answer.json()["storage-credential-type"] == {"type": "bucket", "credential-type": "key"}
    assert secrets() == {reference()} != {before}
    del KEYS["first"]
    assert lake.commit("orders", set_properties(color="red")).status == 200
    assert lake.create_table("bills").status == 200
    entry = AuditEntry.objects.get(action="updateWarehouseStorageCredential")
    assert entry.details == {"name": "lake", "credential-type": "key"}
    assert OutboxEvent.objects.get(type="updateWarehouseStorageCredential").data == entry.details


def test_a_request_in_flight_ends_with_the_keys_it_began_with(
    change: Change, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit has opened its storage and waits for it, while the keys are changed."""
    assert lake.create_table("orders").status == 200
    entered, goes_on, plain = threading.Event(), threading.Event(), BucketStorage.write_new

    def waits(self: Storage, location: str, content: bytes) -> None:
        if threading.current_thread().name != "storage-trial":
            entered.set()
            assert goes_on.wait(30)
        plain(self, location, content)  # type: ignore[arg-type]

    monkeypatch.setattr(BucketStorage, "write_new", waits)
    answers: list[Answer] = []
    commit = threading.Thread(target=lambda: answers.append(lake.commit("orders", set_properties(color="red"))))
    commit.start()
    assert entered.wait(30)
    assert change("storage-credential", {"new-storage-credential": SECOND}).status == 200
    goes_on.set()
    commit.join(30)
    assert answers[0].status == 200
    assert lake.load("orders")["metadata"]["properties"]["color"] == "red"


def test_a_purge_that_waited_uses_the_new_keys(change: Change, lake: Lake) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 204
    assert change("storage-credential", {"new-storage-credential": SECOND}).status == 200
    del KEYS["first"]
    backends._opened.cache_clear()
    ((task,),) = sql("select id from task where lock = %s", location)
    assert run(task) == 1
    assert OBJECTS == {}


def test_another_profile_keeps_the_credential_unless_one_is_sent(change: Change, warehouse: Warehouse) -> None:
    before = reference()
    answer = change("storage", {"storage-profile": {**PROFILE, "endpoint": "http://two"}})
    assert answer.json()["storage-profile"]["endpoint"] == "http://two"
    assert reference() == before
    body = {"storage-profile": {**PROFILE, "endpoint": "http://three"}, "storage-credential": SECOND}
    assert change("storage", body).status == 200
    assert secrets() == {reference()} != {before}
    told = [each.details.get("credential-type") for each in AuditEntry.objects.filter(action="updateWarehouseStorage")]
    assert sorted(told, key=str) == [None, "key"]


def test_a_credential_that_does_not_work_changes_nothing(change: Change, warehouse: Warehouse) -> None:
    audited = AuditEntry.objects.filter(action__startswith="updateWarehouse").count()
    for what, body in (
        ("storage-credential", {"new-storage-credential": {**SECOND, "secret": "wrong"}}),
        ("storage", {"storage-profile": PROFILE, "storage-credential": {**SECOND, "secret": "wrong"}}),
    ):
        answer = change(what, body)
        assert answer.error() == (400, "BadRequestException")
        assert "'second' is not known, or its secret is wrong" in answer.message()
    assert secrets() == {warehouse.storage_secret} == {reference()}
    assert AuditEntry.objects.filter(action__startswith="updateWarehouse").count() == audited


def test_dry_runs_keep_no_secret(change: Change, warehouse: Warehouse) -> None:
    wrong = {**SECOND, "secret": "wrong"}
    for what, body, valid in (
        ("storage/validate-credential", {"new-storage-credential": SECOND}, True),
        ("storage/validate-credential", {"new-storage-credential": wrong}, False),
        ("storage/validate-profile", {"storage-profile": PROFILE}, True),
        ("storage/validate-profile", {"storage-profile": PROFILE, "storage-credential": wrong}, False),
        ("storage/validate-access", None, True),
    ):
        assert change(what, body).json()["valid"] is valid, (what, body)
    del KEYS["first"]
    report = change("storage/validate-access").json()
    assert [each["name"] for each in report["checks"] if each["status"] == "failed"] == ["storage-client-initialized"]
    assert secrets() == {warehouse.storage_secret} == {reference()}


def test_a_credential_that_the_storage_can_do_without_is_removed(change: Change, warehouse: Warehouse) -> None:
    answer = change("storage-credential", {"new-storage-credential": None})
    assert answer.status == 200
    assert "storage-credential-type" not in answer.json()
    assert (reference(), secrets()) == (None, set())


def test_the_present_credential_does_not_fit_another_type(change: Change, warehouse: Warehouse, tmp_path: Any) -> None:
    body = {"storage-profile": {"type": "local", "base-path": str(tmp_path / "other")}}
    answer = change("storage", body)
    assert answer.status == 400
    assert "the present one does not fit a profile of the type 'local'" in answer.message()


def test_two_changes_at_once_are_not_mixed(
    change: Change, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profile is validated with the present credential, which is replaced before the profile is written."""
    plain, done = BucketStorage.write_new, threading.Event()

    def interferes(self: Storage, location: str, content: bytes) -> None:
        plain(self, location, content)  # type: ignore[arg-type]
        if not done.is_set():
            done.set()
            assert change("storage-credential", {"new-storage-credential": SECOND}).status == 200

    monkeypatch.setattr(BucketStorage, "write_new", interferes)
    answer = change("storage", {"storage-profile": {**PROFILE, "endpoint": "http://two"}})
    assert answer.error() == (409, "ConflictException")
    assert "credential was changed in the meantime" in answer.message()
    assert Warehouse.objects.get().storage_profile["endpoint"] == "http://one"


def test_a_deleted_warehouse_takes_its_secret_with_it(admin: AsgiClient, warehouse: Warehouse) -> None:
    assert admin.delete(f"{AT}/{warehouse.id}").status == 204
    assert secrets() == set()


@pytest.mark.parametrize(
    ("failure", "status", "words"),
    [
        (SecretsUnavailable("The secret store is sealed: unseal it"), 503, "is sealed: unseal it"),
        (SecretsNotConfigured("The server has no key: set LAKEWARDEN__SECRETS__KEYS"), 400, "has no key: set"),
    ],
)
def test_a_secret_store_that_fails_changes_nothing(
    admin: AsgiClient, change: Change, monkeypatch: pytest.MonkeyPatch, *, failure: Exception, status: int, words: str
) -> None:
    class Failing:
        def put(self, _: object) -> UUID:
            raise failure

    with monkeypatch.context() as patched:
        patched.setattr(backends, "secrets", Failing)
        for answer in (
            admin.post(AT, created("other", bucket="two")),
            change("storage-credential", {"new-storage-credential": SECOND}),
            change("storage", {"storage-profile": PROFILE, "storage-credential": SECOND}),
        ):
            assert answer.status == status, answer.body
            assert words in answer.message()
    assert Warehouse.objects.count() == 1
    assert secrets() == {reference()}


@pytest.mark.parametrize("what", ["storage-credential", "storage/validate-credential"])
def test_keys_are_changed_by_whoever_may(change: Change, client: AsgiClient, grant: Grant, what: str) -> None:
    grant("alice", "write")
    body = {"new-storage-credential": SECOND}
    assert change(what, body, by=client.as_user("alice")).error() == (403, "ForbiddenException")
    assert change(what, body, by=client.as_user("stranger")).error() == (404, "NoSuchWarehouseException")
    assert len(secrets()) == 1


def test_a_retried_creation_is_answered_once(admin: AsgiClient, warehouse: Warehouse) -> None:
    key = {"Idempotency-Key": "0198c0de-0000-7000-8000-00000000000a"}
    first, second = (admin.post(AT, created("other", bucket="two"), headers=key) for _ in range(2))
    assert (first.status, second.status) == (201, 201)
    assert first.json()["id"] == second.json()["id"]
    assert len(secrets()) == 2
