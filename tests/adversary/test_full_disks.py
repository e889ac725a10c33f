"""A warehouse whose disk is full, or whose directory may not be written to, refuses writes and disturbs no other."""

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from catalog.models import Tabular
from lakewarden import config
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import eventually, metadata_files
from tests.servers.asgi_client import AsgiClient

UNAVAILABLE = (503, "ServiceUnavailableException")


@pytest.fixture
def other(lake: Lake, admin: AsgiClient) -> Lake:
    """Another warehouse of the same users, with a table `bills`."""
    base = config.current().storage.local_roots[0] / f"{lake.warehouse_id}-other"
    asked = {"warehouse-name": "other", "storage-profile": {"type": "local", "base-path": str(base)}}
    made = admin.post("/management/v1/warehouse", asked)
    assert made.status == 201, made.body
    found = Lake(admin, str(made.json()["id"]))
    assert found.create_namespace("sales").status == 200
    assert found.create_table("bills").status == 200
    return found


@contextmanager
def no_room(base: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Writing below `base` fails with this error of the operating system, in the middle of the content."""
    write = os.write

    def writing(descriptor: int, content: memoryview) -> int:
        if not Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(base):
            return write(descriptor, content)
        write(descriptor, content[:10])
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", writing)
        yield


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO])
def test_a_full_disk_is_its_own_warehouses_alone(
    lake: Lake, other: Lake, base: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: everything in a warehouse whose disk is full."""
    assert lake.create_table("orders").status == 200
    before = metadata_files(base)
    with no_room(base, number, monkeypatch), ThreadPoolExecutor(16) as pool:
        refused = [pool.submit(lake.commit, "orders", set_properties(**{f"k{each}": "x"})) for each in range(20)]
        refused += [pool.submit(lake.create_table, f"t{each}") for each in range(5)]
        calm = [pool.submit(other.commit, "bills", set_properties(**{f"k{each}": "x"})) for each in range(20)]
        assert {each.result(60).status for each in calm} == {200}
        assert {each.result(60).error() for each in refused} == {UNAVAILABLE}
    if number in {errno.ENOSPC, errno.EDQUOT}:  # the server stays ready, and says why writes fail
        health = lake.client.get("/health/ready")
        assert (health.status, health.json()["space"]) == (200, "none left")
    eventually(lambda: metadata_files(base) == before)
    assert Tabular.objects.get(name="orders").version == 1
    assert lake.commit("orders", set_properties(a="1")).status == 200
    assert lake.create_table("t0").status == 200
