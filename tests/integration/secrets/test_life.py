"""A warehouse's credential from its creation to its deletion, with a crash at each step."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from pydantic import SecretStr

from catalog.services.deletion import drop_warehouse
from catalog.services.periodic_tasks import forget_unused_secrets
from lakewarden import backends, config
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.actions import WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest, CommitStateUnknown, Unavailable
from lakewarden.events.models import OutboxEvent
from lakewarden.secrets.interface import SecretsUnavailable
from lakewarden.secrets.models import Secret
from lakewarden.storage.interface import StorageUnavailable
from lakewarden.storage.profiles import PROFILES
from tenants import access
from tenants.models import Warehouse
from tenants.services import warehouse_secrets, warehouse_states
from tests.contracts.storage.bucket import OBJECTS
from tests.contracts.storage.locked_bucket import KEY, BucketKey, LockedBucketProfile
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.tasks.purges import run, sql
from tests.servers.asgi_client import AsgiClient

FIRST, SECOND = "first-key-0123456789", "second-key-0123456789"


class Killed(BaseException):
    """As kill -9: no clean-up of the product runs."""


@pytest.fixture
def warehouse(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """On a store that needs a key, and has it."""
    monkeypatch.setitem(PROFILES, "locked-bucket", LockedBucketProfile)
    KEY[:] = [FIRST]
    profile = LockedBucketProfile.model_validate({"type": "locked-bucket", "bucket": "one", "key-prefix": "lake"})
    with warehouse_secrets.kept(BucketKey(key=SecretStr(FIRST))) as kept, changing():
        warehouse.storage_profile, warehouse.location = profile.dump(), profile.location
        warehouse.storage_secret = kept.reference
        warehouse.save()
    yield Warehouse.objects.select_related("project").get(id=warehouse.id)
    OBJECTS.clear()


@pytest.fixture
def granted(warehouse: Warehouse, admin_context: RequestContext) -> Granted[Warehouse]:
    return access.warehouse(admin_context, warehouse.id, WarehouseAction.UPDATE_STORAGE)


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(admin, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


def change(granted: Granted[Warehouse], key: str, *, at: Callable[[str], object] = str) -> None:
    """As a request to change the credential does; `at` is called with the name of each step."""
    with warehouse_secrets.kept(BucketKey(key=SecretStr(key))) as kept:
        at("put")
        with changing():
            row = warehouse_states.locked(granted)
            warehouse_secrets.release(row.storage_secret)
            row.storage_secret = kept.reference
            at("before the change")
            row.save()
            at("before the commit")


def raises(error: BaseException, step: str) -> Callable[[str], None]:
    def at(now: str) -> None:
        if now == step:
            raise error

    return at


def used() -> set[UUID]:
    return {each for each in Warehouse.objects.values_list("storage_secret", flat=True) if each is not None}


def stored() -> set[UUID]:
    return set(Secret.objects.values_list("id", flat=True))


def an_hour_later() -> int:
    Secret.objects.update(created_at=datetime.now(UTC) - timedelta(minutes=61))
    return int(forget_unused_secrets(0))


def test_a_warehouse_is_used_with_its_key_and_the_key_is_nowhere_else(lake: Lake, warehouse: Warehouse) -> None:
    assert lake.create_table("orders").status == 200
    assert lake.commit("orders", set_properties(color="red")).status == 200
    assert used() == stored() == {warehouse.storage_secret}
    assert FIRST not in dump_of_the_database()


def test_a_new_key_is_used_at_once_and_the_old_one_is_gone(lake: Lake, granted: Granted[Warehouse]) -> None:
    assert lake.create_table("orders").status == 200
    change(granted, SECOND)
    KEY[:] = [SECOND]
    assert lake.commit("orders", set_properties(color="red")).status == 200
    assert used() == stored()
    assert len(stored()) == 1


def test_a_request_that_began_before_the_change_goes_on_with_the_new_key(
    granted: Granted[Warehouse], warehouse: Warehouse
) -> None:
    change(granted, SECOND)
    KEY[:] = [SECOND]
    assert warehouse.storage_secret not in stored()
    assert warehouse_secrets.storage_of(warehouse).is_empty(warehouse.location)


def test_a_warehouse_that_has_lost_its_secret_says_so(lake: Lake, warehouse: Warehouse) -> None:
    Secret.objects.all().delete()
    with pytest.raises(StorageUnavailable, match=f"does not have the secret {warehouse.storage_secret}"):
        warehouse_secrets.storage_of(warehouse)
    answer = lake.create_table("orders")
    assert answer.status == 503
    assert "retry-after" in answer.headers
    assert str(warehouse.storage_secret) in answer.json()["error"]["message"]


def test_a_purge_that_waited_uses_the_key_of_today(lake: Lake, granted: Granted[Warehouse]) -> None:
    table = lake.create_table("orders").json()["metadata"]["location"]
    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 204
    change(granted, SECOND)
    KEY[:] = [SECOND]
    ((task,),) = sql("select id from task where queue_name = 'tabular_purge'")
    assert run(task) == 1
    assert not [each for each in OBJECTS if each.startswith(table)]


def test_the_secret_goes_with_its_warehouse(granted: Granted[Warehouse]) -> None:
    drop_warehouse.delete(granted)
    assert stored() == set()


@pytest.mark.parametrize("error", [BadRequest("no"), ValueError("no")])
def test_a_change_that_fails_leaves_nothing(granted: Granted[Warehouse], error: Exception) -> None:
    before = stored()
    with pytest.raises(type(error)):
        change(granted, SECOND, at=raises(error, "before the commit"))
    assert used() == stored() == before


def test_an_outcome_that_is_not_known_deletes_nothing(granted: Granted[Warehouse]) -> None:
    before = stored()
    with pytest.raises(CommitStateUnknown):
        change(granted, SECOND, at=raises(CommitStateUnknown("perhaps"), "put"))
    assert len(stored()) == 2
    assert an_hour_later() == 1
    assert stored() == before


@pytest.mark.parametrize("step", ["put", "before the change", "before the commit", "before the deletion"])
def test_a_crash_at_any_step_leaves_the_warehouse_its_secret_and_nothing_for_ever(
    granted: Granted[Warehouse], warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if step == "before the deletion":
            patch.setattr(type(backends.secrets()), "delete", die)
        with pytest.raises(Killed):
            change(granted, SECOND, at=raises(Killed(), step))
    is_changed = step == "before the deletion"
    assert len(stored()) == 2
    assert forget_unused_secrets(0) == 0
    assert used() <= stored()
    assert an_hour_later() == 1
    assert used() == stored()
    assert (used() == {warehouse.storage_secret}) is not is_changed
    KEY[:] = [SECOND if is_changed else FIRST]
    assert warehouse_secrets.storage_of(Warehouse.objects.get()).is_empty(warehouse.location)


def test_a_secret_that_was_put_too_long_ago_is_not_used(
    monkeypatch: pytest.MonkeyPatch, granted: Granted[Warehouse]
) -> None:
    def sleep(step: str) -> None:
        if step == "put":
            later = time.time() + 1801
            monkeypatch.setattr("time.time", lambda: later)

    before = stored()
    with pytest.raises(Unavailable, match="try again"):
        change(granted, SECOND, at=sleep)
    assert used() == stored() == before


def test_without_a_key_ring_a_credential_is_refused(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config.read({})
    monkeypatch.setattr(config, "current", lambda: settings)
    backends.secrets_in_database.cache_clear()
    with (
        pytest.raises(BadRequest, match=r"storage-credential: it cannot be kept.*set LAKEWARDEN__SECRETS__KEYS"),
        warehouse_secrets.kept(BucketKey(key=SecretStr(FIRST))),
    ):
        raise AssertionError
    backends.secrets_in_database.cache_clear()


def test_a_store_that_does_not_answer_is_503_and_keeps_the_old_secret_for_later(
    granted: Granted[Warehouse], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unavailable(*_: object) -> None:
        raise SecretsUnavailable("Vault is sealed")

    kind = type(backends.secrets())
    with monkeypatch.context() as patch:
        patch.setattr(kind, "delete", unavailable)
        change(granted, SECOND)
    assert "is deleted later: Vault is sealed" in caplog.text
    assert len(stored()) == 2
    assert an_hour_later() == 1
    monkeypatch.setattr(kind, "put", unavailable)
    with pytest.raises(Unavailable, match="nothing was changed: Vault is sealed"):
        change(granted, FIRST)


def test_young_secrets_and_used_ones_are_kept(warehouse: Warehouse) -> None:
    young = backends.secrets().put({"a": "b"})
    Secret.objects.filter(id__in=used()).update(created_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert forget_unused_secrets(0) == 0
    assert stored() == {young, warehouse.storage_secret}


def test_no_key_is_in_events_or_the_audit(granted: Granted[Warehouse]) -> None:
    change(granted, SECOND)
    told = [*AuditEntry.objects.values_list("details", flat=True), *OutboxEvent.objects.values_list("data", flat=True)]
    assert told
    assert not any(key in json.dumps(each) for each in told for key in (FIRST, SECOND))


def dump_of_the_database() -> str:
    """Every value of every table, as text."""

    def rows(table: str) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(f"select t::text from {connection.ops.quote_name(table)} t")  # noqa: S608
            return list(cursor.fetchall())

    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
    return "\n".join(row for name in names for (row,) in rows(name))
