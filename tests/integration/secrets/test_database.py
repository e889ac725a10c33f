"""The store in the database: what stands there is of no use without the keys, nor in another row."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Thread

import pytest
from django.db import connection
from pydantic import SecretStr

from lakewarden import backends
from lakewarden.config import SecretsConfig
from lakewarden.config.secrets import new_key
from lakewarden.ids import new_id
from lakewarden.schema_version import DatabaseNotReady, require_keys
from lakewarden.secrets.database import DatabaseStore
from lakewarden.secrets.interface import SecretMissing, SecretsNotConfigured, SecretUnreadable
from lakewarden.secrets.key_ring import KeyRing
from lakewarden.secrets.models import Secret
from lakewarden.storage.interface import StorageUnavailable
from lakewarden.storage.s3.profile import S3Profile

pytestmark = pytest.mark.usefixtures("database")

VALUE = {"type": "s3", "credential-type": "access-key", "secret-access-key": "très-secret-0123456789"}
OLD, NEW = new_key("old"), new_key("new")


def store(*keys: str) -> DatabaseStore:
    return DatabaseStore(KeyRing.read(SecretsConfig(keys=SecretStr(",".join(keys)) if keys else None)))


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseStore]:
    """The store that the process uses."""
    made = store(OLD)
    monkeypatch.setattr(backends, "secrets_in_database", lambda: made)
    backends._opened.cache_clear()
    yield made
    backends._opened.cache_clear()


def test_a_secret_is_kept_until_it_is_deleted() -> None:
    kept, before = store(OLD), datetime.now(UTC) - timedelta(minutes=1)
    reference, other = kept.put(VALUE), kept.put({"a": "b"})
    assert kept.get(reference) == VALUE
    found = dict(kept.references())
    assert found.keys() == {reference, other}
    assert all(before < each < before + timedelta(minutes=5) for each in found.values())
    kept.delete(reference)
    kept.delete(reference)
    with pytest.raises(SecretMissing, match=str(reference)):
        kept.get(reference)
    assert kept.get(other) == {"a": "b"}


def test_the_table_shows_nothing() -> None:
    store(OLD).put(VALUE)
    with connection.cursor() as cursor:
        cursor.execute("select secret::text, ciphertext from secret")
        text, ciphertext = cursor.fetchone()
    assert b"secret" not in bytes(ciphertext)
    assert b"s3" not in bytes(ciphertext)
    assert "secret-0123456789" not in text


def test_swapped_rows_are_refused() -> None:
    kept = store(OLD)
    one, other = kept.put({"of": "one"}), kept.put({"of": "other"})
    with connection.cursor() as cursor:
        cursor.execute(
            "update secret s set nonce = o.nonce, ciphertext = o.ciphertext from secret o where o.id <> s.id"
        )
    for each in (one, other):
        with pytest.raises(SecretUnreadable, match="the stored value was changed"):
            kept.get(each)


def test_truncated_and_changed_values_are_refused() -> None:
    kept = store(OLD, NEW)
    reference = kept.put(VALUE)
    stored = Secret.objects.get()
    for change in ({"ciphertext": stored.ciphertext[:-1]}, {"ciphertext": b""}, {"nonce": b""}, {"key_id": "new"}):
        Secret.objects.update(**change)
        with pytest.raises(SecretUnreadable):
            kept.get(reference)
        stored.save()
    assert kept.get(reference) == VALUE


def test_a_key_that_was_removed_is_named() -> None:
    reference = store(OLD).put(VALUE)
    with pytest.raises(SecretUnreadable, match="the key 'old', which the server does not have"):
        store(NEW).get(reference)
    assert store(NEW, OLD).get(reference) == VALUE


def test_without_a_key_nothing_is_put() -> None:
    with pytest.raises(SecretsNotConfigured, match="LAKEWARDEN__SECRETS__KEYS"):
        store().put(VALUE)
    assert not Secret.objects.exists()


def test_all_references_are_found_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakewarden.secrets.database._PAGE", 2)
    kept = store(OLD)
    put = {kept.put(VALUE) for _ in range(5)}
    assert {reference for reference, _ in kept.references()} == put


def test_a_server_does_not_start_without_the_keys_of_its_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    store(OLD).put(VALUE)
    for keys, reason in (
        ((), "the server does not have: add it to LAKEWARDEN__SECRETS__KEYS"),
        ((NEW,), "the server does not have"),
        ((new_key("old"),), "another one of the same id"),
    ):
        monkeypatch.setattr(backends, "secrets_in_database", partial(store, *keys))
        with pytest.raises(DatabaseNotReady, match=reason):
            require_keys()
    monkeypatch.setattr(backends, "secrets_in_database", partial(store, NEW, OLD))
    require_keys()


def test_a_storage_is_opened_once_for_a_profile_and_a_secret(
    configured: DatabaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(S3Profile, "open", lambda self, credential: seen.append((self, credential)))
    profile = profile_of("lake")
    credential = VALUE | {"access-key-id": "AKIA"}
    first, second = configured.put(credential), configured.put(credential)
    storage = backends.storage_of(profile, first)
    configured.delete(first)
    assert backends.storage_of(profile_of("lake"), first) is storage
    assert backends.storage_of(profile, second) is not storage
    assert backends.storage_of(profile_of("other"), second) is not storage
    with pytest.raises(StorageUnavailable, match=f"does not have the secret {first}"):
        backends.storage_of(profile_of("other"), first)
    assert len(seen) == 3
    assert profile.parse_credential(credential) == seen[0][1]  # type: ignore[index]


def test_a_thread_that_had_no_connection_has_none_afterwards(configured: DatabaseStore) -> None:
    reference, left = configured.put(VALUE), []

    def read() -> None:
        configured.get(reference)
        left.append(connection.connection)

    thread = Thread(target=read)
    thread.start()
    thread.join()
    assert left == [None]
    configured.get(reference)
    assert connection.connection is not None


def test_an_unknown_reference_is_missing() -> None:
    with pytest.raises(SecretMissing):
        store(OLD).get(new_id())


def profile_of(prefix: str) -> S3Profile:
    return S3Profile.model_validate(
        {"type": "s3", "bucket": "lake", "key-prefix": prefix, "region": "local", "sts-enabled": False}
    )
