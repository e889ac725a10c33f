"""`lakewarden secrets move` and `check`, between the database and a real OpenBao, with kills."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from django.db import transaction

from lakewarden import backends, config
from lakewarden.ids import new_id
from lakewarden.secrets.interface import SecretStore
from lakewarden.secrets.models import Secret
from standalone.commands import lakewarden_command
from tenants.models import Project, Warehouse
from tenants.services import warehouse_secrets
from tests.contracts.secrets.vaults import Vault
from tests.servers.openbao import FOLDER, MOUNT, PASSWORD

VALUE = "value-0123456789"
PREFIX = "LAKEWARDEN__SECRETS__"


@pytest.fixture
def places(database: None, vault: Vault, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Both are configured; `places("vault")` says where new secrets are kept, for this process and the commands."""
    for name, value in {
        "URL": vault.server.url,
        "MOUNT": MOUNT,
        "PATH": FOLDER,
        "AUTH": "userpass",
        "USERNAME": "svc",
        "PASSWORD": PASSWORD,
    }.items():
        monkeypatch.setenv(f"{PREFIX}VAULT__{name}", value)

    def forget() -> None:
        config.current.cache_clear()
        backends._secrets_in_vault.cache_clear()

    def choose(backend: str) -> None:
        monkeypatch.setenv(f"{PREFIX}BACKEND", backend)
        forget()

    choose("database")
    yield choose
    monkeypatch.undo()
    forget()


def warehouses(count: int) -> dict[UUID, str]:
    """Warehouses with a credential each, by id."""
    project, _ = Project.objects.get_or_create(id="p", defaults={"name": "p"})
    made = {}
    for number in range(count):
        identifier = new_id()
        made[identifier] = f"{VALUE}-{number}"
        Warehouse.objects.create(
            id=identifier,
            project=project,
            name=f"w{number}",
            name_key=f"w{number}",
            storage_profile={"type": "local", "base-path": f"/{identifier}"},
            location=f"file:///{identifier}",
            delete_profile={"type": "hard"},
            storage_secret=backends.secrets().put({"key": made[identifier]}),
        )
    return made


def read() -> dict[UUID, str]:
    """As a server reads them, wherever they are."""
    return {each.id: backends.secrets().get(each.storage_secret)["key"] for each in Warehouse.objects.all()}  # type: ignore[arg-type]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        lakewarden_command("secrets", *arguments),
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def stores() -> tuple[SecretStore, SecretStore]:
    """Vault's and the database's."""
    return backends.secret_stores(in_vault=True)


def test_there_and_back(places: Callable[[str], None]) -> None:
    made = warehouses(5)
    places("vault")
    assert read() == made
    checked = command("check")
    assert checked.returncode == 0, checked.stderr
    assert "The credentials of 5 of 5 warehouses can be read" in checked.stdout
    assert "5 of them are in the other place: run `lakewarden secrets move --to vault`" in checked.stdout
    moved = command("move", "--to", "vault")
    assert (moved.returncode, moved.stdout) == (0, "5 credentials moved to vault, 0 could not be read\n"), moved.stderr
    assert not Secret.objects.exists()
    assert len(list(stores()[0].references())) == 5
    assert read() == made
    assert command("move", "--to", "vault").stdout == "0 credentials moved to vault, 0 could not be read\n"
    places("database")
    assert read() == made
    assert command("move", "--to", "database").stdout == "5 credentials moved to database, 0 could not be read\n"
    assert list(stores()[0].references()) == []
    assert read() == made
    assert VALUE not in checked.stdout + checked.stderr + moved.stdout + moved.stderr


def test_the_new_place_must_be_configured_first(places: Callable[[str], None]) -> None:
    refused = command("move", "--to", "vault")
    assert refused.returncode == 1
    assert "set LAKEWARDEN__SECRETS__BACKEND=vault on all servers" in refused.stderr


def test_a_move_may_be_killed_and_repeated_while_servers_read(
    places: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = warehouses(250)
    places("vault")
    process = subprocess.Popen(
        lakewarden_command("secrets", "move", "--to", "vault"),
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    with process:
        first = process.stderr.readline()
        process.send_signal(signal.SIGKILL)
    assert first == "100 of 250 credentials are moved\n"
    assert read() == made
    done = command("move", "--to", "vault")
    assert done.returncode == 0, done.stderr
    assert read() == made
    monkeypatch.setattr(warehouse_secrets, "UNUSED_AFTER", timedelta(0))
    warehouse_secrets.forget_unused()
    assert read() == made
    assert {reference for reference, _ in backends.secrets().references()} == {
        each.storage_secret for each in Warehouse.objects.all()
    }


def test_a_seal_stops_the_move_and_loses_nothing(places: Callable[[str], None], vault: Vault) -> None:
    made = warehouses(3)
    places("vault")
    vault.server.seal()
    try:
        stopped = command("move", "--to", "vault")
        checked = command("check")
    finally:
        vault.server.unseal()
    assert stopped.returncode == checked.returncode == 1
    assert "Vault is sealed or not ready" in stopped.stderr
    assert "Vault is sealed or not ready" in checked.stderr
    assert read() == made


def test_a_row_that_is_held_ends_the_move_with_a_sentence(
    places: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = warehouses(2)
    places("vault")
    monkeypatch.setenv("LAKEWARDEN__WORKER__LOCK_TIMEOUT_S", "0.5")
    with psycopg.connect(os.environ["LAKEWARDEN__DATABASE__URL"]) as other:
        other.execute("select 1 from warehouse where id = %s for update", [max(made)])
        stopped = command("move", "--to", "vault")
    assert stopped.returncode == 1
    assert "changing the same object and took too long" in stopped.stderr
    assert "1 credentials were moved: run it again" in stopped.stderr
    assert command("move", "--to", "vault").returncode == 0
    assert read() == made
    assert len(list(stores()[0].references())) == 2


def test_a_credential_that_was_replaced_meanwhile_is_left_alone(
    places: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenants.services import secret_moves  # noqa: PLC0415

    (warehouse,) = warehouses(1)
    places("vault")
    put = type(stores()[0]).put

    def put_late(store: SecretStore, value: dict[str, str]) -> UUID:
        reference = put(store, value)
        with transaction.atomic(), warehouse_secrets.kept(None):
            fresh = put(store, {"key": "newer"})
            Warehouse.objects.filter(id=warehouse).update(storage_secret=fresh)
        return reference

    with monkeypatch.context() as patch:
        patch.setattr(type(stores()[0]), "put", put_late)
        list(secret_moves.move(to_vault=True))
    assert read() == {warehouse: "newer"}
    assert len(list(stores()[0].references())) == 1


def test_a_warehouse_without_its_secret_is_named(places: Callable[[str], None]) -> None:
    (warehouse,) = warehouses(1)
    Secret.objects.all().delete()
    checked = command("check")
    assert checked.returncode == 1
    assert f"warehouse 'w0' ({warehouse}): " in checked.stderr
    assert "does not have the secret" in checked.stderr
