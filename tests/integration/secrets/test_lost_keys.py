"""`lakewarden secrets forget-lost`: the way on when keys are lost, which deletes nothing that can be read."""

import os
import subprocess
from functools import partial

import pytest
from pydantic import SecretStr

from lakewarden import backends
from lakewarden.config import SecretsConfig
from lakewarden.config.secrets import new_key
from lakewarden.schema_version import DatabaseNotReady, require_keys
from lakewarden.secrets.database import DatabaseStore
from lakewarden.secrets.key_ring import KeyRing
from lakewarden.secrets.models import Secret
from standalone.commands import lakewarden_command

pytestmark = pytest.mark.usefixtures("database")

LOST, NEW = new_key("lost"), new_key("new")
WITH_NEW = {"LAKEWARDEN__SECRETS__KEYS": NEW}
VALUE = {"secret-access-key": "très-secret-0123456789"}


def store(*keys: str) -> DatabaseStore:
    return DatabaseStore(KeyRing.read(SecretsConfig(keys=SecretStr(",".join(keys)))))


def forget(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if "SECRETS__KEYS" not in name}
    return subprocess.run(
        lakewarden_command("secrets", "forget-lost", *words),
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_what_no_key_can_read_is_deleted_on_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    lost, kept = {store(LOST).put(VALUE) for _ in range(3)}, {store(NEW).put(VALUE) for _ in range(2)}
    monkeypatch.setattr(backends, "secrets_in_database", partial(store, NEW))
    with pytest.raises(DatabaseNotReady, match="secrets forget-lost"):
        require_keys()

    listed = forget(**WITH_NEW)
    assert (listed.returncode, listed.stdout) == (0, "3 secrets that cannot be read were found\n")
    assert all(str(each) in listed.stderr for each in lost)
    assert Secret.objects.count() == 5

    removed = forget("--remove", **WITH_NEW)
    assert (removed.returncode, removed.stdout) == (0, "3 secrets that cannot be read were deleted\n")
    assert set(Secret.objects.values_list("id", flat=True)) == kept
    require_keys()
    assert [store(NEW).get(each) for each in kept] == [VALUE] * 2


def test_a_configuration_without_a_key_deletes_nothing() -> None:
    store(LOST).put(VALUE)
    done = forget("--remove")
    assert done.returncode == 1
    assert "no key to encrypt secrets with" in done.stderr
    assert Secret.objects.count() == 1
