"""A process that is killed in the middle of a batch leaves whole commits or none, and files that nothing points to."""

import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from catalog.models import Tabular, TabularDocument
from catalog.services import lost_creations, orphan_files
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger.models import Grant
from lakewarden.events.models import OutboxEvent
from tests.integration.catalog import killed_creations, killed_writer
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import eventually, local

ROOT = Path(__file__).parents[3]


def _run_until_killed(module: str, *arguments: str) -> None:
    """Returns when the database has also ended its sessions: it still carries out what it was sent last."""
    others = _sessions()
    command = [sys.executable, "-m", module, *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    eventually(lambda: _sessions() <= others)


def _sessions() -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute("select pid from pg_stat_activity where datname = current_database()")
        return {pid for (pid,) in cursor.fetchall()}


@pytest.mark.parametrize("step", killed_writer.STEPS)
def test_a_killed_process_leaves_whole_commits_or_none(lake: Lake, base: Path, step: str) -> None:
    names = ("orders", "bills")
    for name in names:
        lake.create_table(name)
    _run_until_killed(killed_writer.__name__, lake.warehouse_id, step)
    named = set()
    for name in names:
        row = Tabular.objects.get(name=name)
        document = TabularDocument.objects.get(tabular=row)
        commits = row.version - 1
        assert document.version == row.version
        assert commits in {0, 6}
        assert AuditEntry.objects.filter(action="updateTable", object_id=row.uuid).count() == commits
        assert OutboxEvent.objects.filter(type="updateTable", object_id=row.uuid).count() == commits
        state = lake.load(name)
        assert {key for key in state["metadata"]["properties"] if key.startswith("k")} == {
            f"k{number}" for number in range(commits)
        }
        named |= {local(state["metadata-location"])}
        named |= {local(each["metadata-file"]) for each in state["metadata"]["metadata-log"]}
    there = set(base.rglob("*.metadata.json"))
    assert named <= there
    assert len(there - named) <= 12
    found = list(orphan_files.find(older_than=timedelta(0)))
    assert {local(each.location) for each in found if isinstance(each, orphan_files.Orphan)} == there - named
    if step == killed_writer.STEPS[3]:
        assert Tabular.objects.filter(version=7).exists()
    # later commits are not blocked
    assert lake.commit("orders", set_properties(next="x")).status == 200


@pytest.mark.parametrize("step", killed_creations.STEPS)
def test_a_killed_process_leaves_whole_tables_or_none(
    lake: Lake, base: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run_until_killed(killed_creations.__name__, lake.warehouse_id, step)
    rows = {row.name: row for row in Tabular.objects.all()}
    made = rows.keys() - {"warm"}
    assert TabularDocument.objects.count() == len(rows)
    owned = Grant.objects.filter(object_id__in=[str(row.id) for row in rows.values()], privilege="ownership")
    assert owned.count() == len(rows)
    for recorded in (
        AuditEntry.objects.filter(action="createTable").values_list("object_id", flat=True),
        OutboxEvent.objects.filter(type="createTable").values_list("object_id", flat=True),
    ):
        assert sorted(recorded) == sorted(str(row.uuid) for row in rows.values())
    named = {local(lake.load(name)["metadata-location"]) for name in rows}
    there = set(base.rglob("*.metadata.json"))
    assert named <= there
    assert len(there - named) <= killed_creations.TABLES - len(made)
    monkeypatch.setattr(lost_creations, "_UNDER_WAY", timedelta(0))
    lost = list(orphan_files.find(older_than=timedelta(0)))
    assert {local(each.location) for each in lost if not isinstance(each, orphan_files.Skipped)} == there - named
    if step == killed_creations.STEPS[3]:
        assert made
    if step in killed_creations.STEPS[:2]:
        assert not made
    # the names are not blocked
    for number in range(killed_creations.TABLES):
        name = f"t{number}"
        assert lake.create_table(name).status == (409 if name in made else 200)
