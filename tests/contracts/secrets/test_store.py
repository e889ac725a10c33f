"""What every store of secrets promises."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections

from lakewarden.ids import new_id
from lakewarden.secrets.interface import SecretMissing, SecretStore

VALUE = {"type": "s3", "secret-access-key": 'très secret "0123456789"\n', "empty": ""}


def test_a_secret_is_what_was_put(store: SecretStore) -> None:
    reference, other = store.put(VALUE), store.put({"a": "b"})
    assert store.get(reference) == VALUE
    assert store.get(other) == {"a": "b"}
    assert reference != other


def test_a_large_secret_is_kept_whole(store: SecretStore) -> None:
    large = {"key": "k" * 16_384}
    assert store.get(store.put(large)) == large


def test_a_deleted_secret_is_missing_and_may_be_deleted_again(store: SecretStore) -> None:
    reference = store.put(VALUE)
    store.delete(reference)
    store.delete(reference)
    with pytest.raises(SecretMissing, match=str(reference)):
        store.get(reference)


def test_an_unknown_secret_is_missing(store: SecretStore) -> None:
    with pytest.raises(SecretMissing):
        store.get(new_id())
    store.delete(new_id())


def test_all_references_are_listed_with_their_times(store: SecretStore) -> None:
    assert dict(store.references()) == {}
    before = datetime.now(UTC) - timedelta(minutes=1)
    put = {store.put(VALUE) for _ in range(3)}
    gone = store.put(VALUE)
    store.delete(gone)
    found = dict(store.references())
    assert found.keys() == put
    assert all(before < at < before + timedelta(minutes=10) for at in found.values())


def test_threads_share_a_store(store: SecretStore) -> None:
    def put_and_get(number: int) -> str:
        try:
            return store.get(store.put({"n": str(number)}))["n"]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(put_and_get, range(20))) == [str(number) for number in range(20)]


def test_a_message_never_contains_the_secret(store: SecretStore) -> None:
    reference = store.put(VALUE)
    store.delete(reference)
    with pytest.raises(SecretMissing) as missing:
        store.get(reference)
    assert "0123456789" not in f"{missing.value!r} {missing.value.__cause__!r} {store!r}"
