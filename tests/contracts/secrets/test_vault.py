"""What can go wrong with Vault: each is named, none is taken for a missing secret, and the end of it is noticed."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from lakewarden.ids import new_id
from lakewarden.secrets.interface import SecretMissing, SecretsUnavailable
from tests.contracts.secrets.vaults import Vault
from tests.servers.openbao import FOLDER, MOUNT, PASSWORD

VALUE = {"key": "value-0123456789"}
PATIENCE_S = 30.0


def soon(get: Callable[[], Any]) -> Any:
    """What it gives once it does not fail any more."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return get()
        except SecretsUnavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_a_seal_in_the_middle_is_named_and_over_with_it(vault: Vault) -> None:
    store = vault.store()
    reference = store.put(VALUE)
    vault.server.seal()
    try:
        for call in (lambda: store.get(reference), lambda: store.put(VALUE), lambda: store.delete(reference)):
            with pytest.raises(SecretsUnavailable, match="Vault is sealed or not ready"):
                call()
        with pytest.raises(SecretsUnavailable, match="Vault is sealed or not ready"):
            list(store.references())
        with pytest.raises(SecretsUnavailable, match="Vault is sealed or not ready"):
            vault.store().get(reference)  # which has not logged in yet
    finally:
        vault.server.unseal()
    assert soon(lambda: store.get(reference)) == VALUE


def test_a_restart_is_survived(vault: Vault) -> None:
    store = vault.store()
    reference = store.put(VALUE)
    vault.server.stop()
    with pytest.raises(SecretsUnavailable, match=f"Vault cannot be reached at {vault.server.url}"):
        store.get(reference)
    vault.server.start()
    assert soon(lambda: store.get(reference)) == VALUE
    assert [each for each, _ in store.references()] == [reference]


def test_a_connection_that_the_server_closed_is_opened_again(vault: Vault) -> None:
    store = vault.store()
    reference = store.put(VALUE)
    vault.server.stop()
    vault.server.start()
    assert store.get(reference) == VALUE


def test_a_server_that_hangs_costs_one_time_out_and_no_more_waiting(vault: Vault) -> None:
    store = vault.store()
    reference = store.put(VALUE)
    vault.server.pause()
    try:
        with pytest.raises(SecretsUnavailable, match="does not answer within 2 seconds"):
            store.get(reference)
        asked = []
        vault_asked = store._session._twice
        store._session._twice = lambda action: asked.append(1) or vault_asked(action)  # type: ignore[method-assign, func-returns-value]
        for _ in range(100):
            with pytest.raises(SecretsUnavailable, match="does not answer within 2 seconds"):
                store.get(reference)
        assert len(asked) <= 1
    finally:
        vault.server.go_on()
    assert soon(lambda: store.get(reference)) == VALUE


def test_many_who_need_a_login_do_not_wait_in_turn(vault: Vault) -> None:
    store, logins, ready = vault.store(), [], Barrier(8)
    session = store._session
    log_in = session._new_login
    session._new_login = lambda: logins.append(1) or log_in()  # type: ignore[method-assign, func-returns-value]

    def get() -> None:
        ready.wait(10)
        store.get(new_id())

    vault.server.pause()
    try:
        with ThreadPoolExecutor(8) as threads:
            for each in [threads.submit(get) for _ in range(8)]:
                assert isinstance(each.exception(60), SecretsUnavailable)
    finally:
        vault.server.go_on()
    # one, and one more if somebody comes when the pause after it is over
    assert 1 <= len(logins) <= 2
    assert soon(lambda: store.put(VALUE))


def test_a_policy_that_denies_is_told_apart_from_a_login_that_ended(vault: Vault) -> None:
    reference = vault.store().put(VALUE)
    token = vault.server.new_token(policy="default")
    denied = vault.store(auth="token", token=token)
    with pytest.raises(SecretsUnavailable, match=f"Vault denies access.*{MOUNT}/data/{FOLDER}"):
        denied.get(reference)
    allowed = vault.store(auth="token", token=vault.server.new_token())
    assert allowed.get(reference) == VALUE
    vault.server.call("POST", "auth/token/revoke", {"token": allowed._session._client.token})
    with pytest.raises(SecretsUnavailable, match="Vault refuses the login by token"):
        allowed.get(reference)


def test_a_token_from_a_file_is_read_again_when_it_ends(vault: Vault, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(vault.server.new_token() + "\n")
    store = vault.store(auth="token", token_file=file)
    reference = store.put(VALUE)
    vault.server.call("POST", "auth/token/revoke", {"token": file.read_text().strip()})
    file.write_text(vault.server.new_token())
    assert store.get(reference) == VALUE
    file.unlink()
    with pytest.raises(SecretsUnavailable, match="file for the login to Vault cannot be read: No such file"):
        vault.store(auth="token", token_file=file).get(reference)


def test_a_token_is_renewed_and_a_login_made_again_when_it_cannot_be(vault: Vault) -> None:
    store = vault.store(**vault.approle())
    reference = store.put(VALUE)
    first, tokens = time.monotonic(), {store._session._client.token}
    while time.monotonic() < first + 9:  # a token ends after 2 s, if it is not renewed, and after 6 s
        assert store.get(reference) == VALUE
        tokens.add(store._session._client.token)
        time.sleep(0.2)
    assert 2 <= len(tokens) <= 4
    time.sleep(2.5)  # nobody has used it, so nobody has renewed it
    assert store.get(reference) == VALUE


@pytest.mark.parametrize(
    "login",
    [
        {"auth": "userpass", "username": "svc", "password": "wrong-9876543210"},
        {"auth": "userpass", "username": "nobody", "password": "wrong-9876543210"},
        {"auth": "approle", "role_id": "wrong-9876543210", "secret_id": "wrong-9876543210"},
        {"auth": "token", "token": "wrong-9876543210"},
    ],
    ids=["password", "user", "role", "token"],
)
def test_a_wrong_login_is_named_without_what_was_wrong(vault: Vault, login: dict[str, str]) -> None:
    with pytest.raises(SecretsUnavailable, match=f"Vault refuses the login by {login['auth']}") as refused:
        vault.store(**login).put(VALUE)
    assert "9876543210" not in f"{refused.value} {refused.value.__cause__}"


@pytest.mark.parametrize("settings", [{"mount": "elsewhere"}, {"auth_mount": "elsewhere"}])
def test_a_wrong_place_is_not_a_missing_secret(vault: Vault, settings: dict[str, str]) -> None:
    reference = vault.store().put(VALUE)
    login = {"auth": "userpass", "username": "svc", "password": PASSWORD}
    if "mount" in settings:
        login = {"auth": "token", "token": vault.server.root}
    with pytest.raises(SecretsUnavailable):
        vault.store(**login, **settings).get(reference)


def test_an_engine_of_another_kind_is_not_a_missing_secret(vault: Vault) -> None:
    vault.server.call("POST", "sys/mounts/kv1", {"type": "kv", "options": {"version": "1"}})
    store = vault.store(auth="token", token=vault.server.root, mount="kv1")
    with pytest.raises(SecretsUnavailable, match="is not KV of version 2"):
        store.get(store.put(VALUE))


def test_installations_do_not_see_each_others_secrets(vault: Vault) -> None:
    reference = vault.store().put(VALUE)
    other = Vault(vault.server).store()
    assert list(other.references()) == []
    with pytest.raises(SecretMissing):
        other.get(reference)


def test_what_others_put_into_the_folder_is_not_listed(vault: Vault) -> None:
    store = vault.store()
    reference = store.put(VALUE)
    for name in ("note", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"):
        vault.server.call("POST", f"{MOUNT}/data/{FOLDER}/{vault.installation}/{name}", {"data": {"a": "b"}})
    assert [each for each, _ in store.references()] == [reference]


def test_a_deleted_secret_cannot_be_restored_in_vault(vault: Vault) -> None:
    store = vault.store()
    reference = store.put(VALUE)
    store.delete(reference)
    path = f"{FOLDER}/{vault.installation}/{reference}"
    with pytest.raises(AssertionError, match="404"):
        vault.server.call("GET", f"{MOUNT}/metadata/{path}")


def test_no_secret_is_logged_at_any_level(vault: Vault, caplog: pytest.LogCaptureFixture) -> None:
    # the product's settings keep urllib3 quieter than that: nothing here may depend on it
    for name in ("", "lakewarden", "hvac", "requests", "urllib3"):
        caplog.set_level(logging.DEBUG, logger=name)
    store = vault.store()
    store.get(store.put(VALUE))
    with pytest.raises(SecretsUnavailable):
        vault.store(auth="userpass", username="svc", password="wrong-9876543210").put(VALUE)
    assert "/v1/auth/userpass/login/svc" in caplog.text
    for secret in ("0123456789", "9876543210", store._session._client.token):
        assert secret not in caplog.text
