"""Arranges purges for tests: files of a dropped table, its task, what the ledger says of it, and a worker's part."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from procrastinate.contrib.django.models import ProcrastinateJob

from lakewarden.storage.removal import Tally
from lakewarden.tasks import purge
from lakewarden.tasks.scope import Entity, Scope
from tenants.models import Warehouse


@dataclass(frozen=True)
class Wanted:
    """One purge of files that are there; `tally` is what its ledger must say at the end."""

    task_id: UUID
    folder: Path
    tally: Tally


def sql(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall()) if cursor.description else []


def fill(folder: Path, names: Sequence[str], *, content: bytes = b"rows") -> Tally:
    """Write them, all anew; counts what a purge of the folder has to remove."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content * (number + 1))
    files = [path for path in folder.rglob("*") if not path.is_dir()]
    folders = sum(path.is_dir() for path in folder.rglob("*")) + 1
    return Tally(len(files), sum(path.stat().st_size for path in files), folders)


def ask(warehouse: Warehouse, folder: Path, *, within: Path | None = None, not_before: datetime | None = None) -> UUID:
    with transaction.atomic():
        return purge.request(
            warehouse.storage_profile,
            f"file://{folder}",
            scope=Scope(warehouse.project_id, warehouse.id),
            owner=folder.name,
            entity=Entity("table", folder.name, ("sales", folder.name)),
            not_before=not_before,
            within=None if within is None else f"file://{within}",
        )


def ledger(task_id: UUID) -> Tally:
    rows = sql("select sum(files), sum(bytes), sum(folders) from purge_ledger where task_id = %s", task_id)
    return Tally(*(int(value or 0) for value in rows[0]))


def run(task_id: UUID) -> int:
    """One attempt, as a worker begins it; returns how many files the purge has removed in all."""
    job = ProcrastinateJob.objects.get(id=sql("select job_id from task where id = %s", task_id)[0][0])
    return int(purge.purge_location(**job.args))


def outcome(task_id: UUID) -> tuple[str | None, str | None]:
    return sql("select outcome, message from task where id = %s", task_id)[0]
