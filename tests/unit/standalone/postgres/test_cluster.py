import os
from pathlib import Path
from typing import NamedTuple

import pytest

from standalone.errors import EmbeddedError
from standalone.postgres.binaries import Binaries
from standalone.postgres.cluster import Cluster
from standalone.postgres.home import Home


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(Home(tmp_path, tmp_path, account=None), Binaries(tmp_path / "bin"), durable=False)


def test_full_disk_is_refused_before_anything_is_made(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(2**30, 2**30 - 2**20, 2**20))
    with pytest.raises(EmbeddedError, match=r"is full: 1 MiB are free and 200 MiB are needed\. Free some"):
        cluster.ensure_made("password")
    assert list(cluster.home.base.iterdir()) == []


def test_folder_that_is_no_cluster_is_refused(cluster: Cluster) -> None:
    cluster.home.cluster.mkdir()
    with pytest.raises(EmbeddedError, match="cannot be read as a PostgreSQL data folder"):
        cluster.ensure_made("password")


@pytest.mark.parametrize("text", ["", "no number\n", "999999999\n"])
def test_stale_or_damaged_lock_file_is_removed(cluster: Cluster, text: str) -> None:
    cluster.home.cluster.mkdir()
    (cluster.home.cluster / "postmaster.pid").write_text(text)
    cluster.ensure_unused()
    assert not (cluster.home.cluster / "postmaster.pid").exists()


@pytest.mark.parametrize(
    ("pid", "status", "expected"), [("7", "ready   ", True), ("7", "starting", False), ("8", "ready   ", False)]
)
def test_server_is_ready_when_its_own_lock_file_says_so(
    cluster: Cluster, pid: str, status: str, *, expected: bool
) -> None:
    assert not cluster.accepts_connections(7)
    cluster.home.cluster.mkdir()
    lines = [pid, "/data", "1", "5432", "", "127.0.0.1", "  1  2", status]
    (cluster.home.cluster / "postmaster.pid").write_text("\n".join(lines) + "\n")
    assert cluster.accepts_connections(7) is expected


def test_password_is_made_once_and_private(cluster: Cluster) -> None:
    password = cluster.home.password()
    assert cluster.home.password() == password
    assert len(password) >= 32
    assert (cluster.home.data_dir / "postgres.password").stat().st_mode & 0o777 == 0o600
    assert (cluster.home.data_dir / "postgres.password").stat().st_uid == os.geteuid()


def test_lost_password_is_a_sentence(cluster: Cluster) -> None:
    cluster.home.cluster.mkdir()
    with pytest.raises(EmbeddedError, match=r"is gone: put .*postgres\.password back, or delete .*postgres to"):
        cluster.home.password()
