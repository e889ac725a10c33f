"""`lakewarden secrets rotate`: nothing is lost, whoever does what at the same time."""

import os
import signal
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import connections
from pydantic import SecretStr

from lakewarden.config import SecretsConfig
from lakewarden.config.secrets import new_key
from lakewarden.secrets import rotation
from lakewarden.secrets.database import DatabaseStore
from lakewarden.secrets.interface import SecretUnreadable
from lakewarden.secrets.key_ring import KeyRing
from lakewarden.secrets.models import Secret
from standalone.commands import lakewarden_command

pytestmark = pytest.mark.usefixtures("database")

OLD, NEW, OTHER = new_key("old"), new_key("new"), new_key("other")


def ring(*keys: str) -> KeyRing:
    return KeyRing.read(SecretsConfig(keys=SecretStr(",".join(keys))))


def kept(count: int, *keys: str) -> dict[UUID, dict[str, str]]:
    store = DatabaseStore(ring(*keys))
    return {store.put({"n": str(number)}): {"n": str(number)} for number in range(count)}


def read(references: Mapping[UUID, object], *keys: str) -> dict[UUID, dict[str, str]]:
    store = DatabaseStore(ring(*keys))
    return {each: store.get(each) for each in references}


def environment(*keys: str) -> dict[str, str]:
    return os.environ | {"LAKEWARDEN__SECRETS__KEYS": ",".join(keys), "PYTHONUNBUFFERED": "1"}


def command(*keys: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        lakewarden_command("secrets", "rotate"),
        env=environment(*keys),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_all_are_readable_with_the_new_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "BATCH", 2)
    secrets = kept(5, OLD)
    assert rotation.left(ring(NEW, OLD)) == 5
    assert [each.rotated for each in rotation.rotate(ring(NEW, OLD))] == [2, 2, 1]
    assert rotation.left(ring(NEW, OLD)) == 0
    assert read(secrets, NEW) == secrets
    assert list(rotation.rotate(ring(NEW, OLD))) == []
    with pytest.raises(SecretUnreadable):
        read(secrets, OLD)


def test_one_that_cannot_be_decrypted_is_told_and_left() -> None:
    secrets = kept(3, OLD)
    (foreign,) = kept(1, OTHER)
    (found,) = rotation.rotate(ring(NEW, OLD))
    assert found.rotated == 3
    assert [str(foreign) in sentence for sentence in found.unreadable] == [True]
    assert read(secrets, NEW) == secrets
    assert read([foreign], OTHER) == {foreign: {"n": "0"}}  # type: ignore[arg-type]


def test_two_rotations_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "BATCH", 3)
    secrets = kept(40, OLD)

    def rotate(_: int) -> int:
        try:
            return sum(each.rotated for each in rotation.rotate(ring(NEW, OLD)))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        assert sum(threads.map(rotate, range(2))) == 40
    assert read(secrets, NEW) == secrets


def test_the_command_may_be_killed_and_repeated() -> None:
    secrets = kept(1500, OLD)
    process = subprocess.Popen(
        lakewarden_command("secrets", "rotate"), env=environment(NEW, OLD), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process:
        first = process.stderr.readline()
        process.send_signal(signal.SIGKILL)
    assert first == "100 of 1500 secrets are encrypted with the key 'new'\n"
    assert read(secrets, NEW, OLD) == secrets
    done = command(NEW, OLD)
    assert done.returncode == 0, done.stderr
    assert "All secrets are encrypted with the key 'new'" in done.stdout
    assert read(secrets, NEW) == secrets


def test_the_command_says_which_key_must_stay() -> None:
    kept(1, OLD)
    kept(1, OTHER)
    done = command(NEW, OLD)
    assert done.returncode == 1
    assert "1 secrets are still encrypted with another key, 1 of them cannot be decrypted" in done.stderr
    assert "the key 'other', which the server does not have" in done.stderr
    assert Secret.objects.filter(key_id="new").count() == 1
    assert not any(key.partition(":")[2] in done.stdout + done.stderr for key in (OLD, NEW, OTHER))
