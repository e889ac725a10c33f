"""Two versions at once: servers of the release before go on while this one migrates, and beside it afterwards.

There is no release before this one yet: in its place is the code before the newest migration, from the history.
"""

import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from standalone.commands import AUDIENCE
from tests.integration.storage.served_lake import ServedLake
from tests.servers.issuer import RunningIssuer, run_issuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code before the newest migration."""
    newest = _git("log", "-1", "--format=%H", "--diff-filter=A", "--", "*/migrations/*.py").strip()
    folder = tmp_path_factory.mktemp("before")
    archive = subprocess.run(["git", "archive", f"{newest}^"], cwd=ROOT, capture_output=True, check=True, timeout=60)
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True, timeout=60)
    added = _git("show", "--format=", "--name-only", "--diff-filter=A", newest).split()
    assert not any((folder / each).exists() for each in added)
    return folder


@dataclass
class Traffic:
    """Commits to one table, as long as it is open."""

    lake: ServedLake
    warehouse: str
    statuses: list[int] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._commit)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(60)

    def _commit(self) -> None:
        while not self._ended.is_set():
            self.statuses.append(self.lake.commit(self.warehouse).status)
            time.sleep(0.02)


def test_servers_of_the_version_before_go_on_while_the_next_one_migrates(before: Path, tmp_path: Path) -> None:
    with run_issuer(tmp_path / "state") as issuer, _of(before, issuer) as old:
        old.bootstrap(f"oidc~{issuer.identities.admin.client_id}")
        old.start()
        first = ServedLake(old, issuer, issuer.admin_token())
        warehouse = first.warehouse("lake", {"type": "local", "base-path": str(old.local_root / "lake")})
        traffic = Traffic(first, warehouse)
        new = LakewardenServer(
            {name: value for name, value in old.settings.items() if name != "PYTHONPATH"},
            old.local_root,
            tmp_path / "new.log",
        )
        with traffic.running():
            assert "migrations applied" in new.run("migrate")
            migrated = len(traffic.statuses)
            new.start()
            second = ServedLake(new, issuer, first.token)
            try:
                for _ in range(20):
                    assert second.commit(warehouse).status == 200
                assert second.create(warehouse, "later").status == 200
                assert first.load(warehouse, "later").status == 200
                assert first.create(warehouse, "of-the-version-before").status == 200
                assert second.drop(warehouse, "of-the-version-before").status == 204
                assert first.names(warehouse) == second.names(warehouse) == {"t", "later"}
            finally:
                new.stop()
        assert set(traffic.statuses) == {200}
        assert 0 < migrated < len(traffic.statuses)
        old.stop()
        with pytest.raises(AssertionError, match="newer than this version"):
            old.run("migrate", "--check")


@contextmanager
def _of(folder: Path, issuer: RunningIssuer) -> Iterator[LakewardenServer]:
    """A server of the code in this folder, on a database that it has migrated."""
    settings: Mapping[str, Any] = {
        "PYTHONPATH": f"{folder}:{folder / 'platform'}",
        "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url,
        "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE,
    }
    with prepared(settings) as server:
        yield server


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
