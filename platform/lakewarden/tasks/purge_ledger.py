"""Counts in the database what a purge has removed; correct even if its worker dies, at any time and repeatedly.

Files are announced (with their sizes) before they are removed, and settled afterwards. The next attempt checks what was
announced and never settled: files that are missing by then were removed by the attempt that died, and are counted.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, astuple
from typing import Any

from lakewarden import config
from lakewarden.prepared_statements import execute, fetch
from lakewarden.storage.removal import Found, Tally
from lakewarden.tasks.attempts import Attempt, Superseded


class Ledger:
    """The counts of one attempt; `total` covers all attempts of the task.

    Counts only in memory for a task without record.
    """

    def __init__(self, run: Attempt, location: str) -> None:
        self._run, self._announced_by = run, run.number
        self.total = Tally()
        if run.number is not None:
            execute(_OPEN, [run.task_id, run.number, location])
            self.total = Tally(*fetch(_TOTAL, [run.task_id])[0])

    def unsettled(self) -> list[Found]:
        """The files that an earlier attempt announced and may have removed; they must be settled first."""
        rows = fetch("select attempt, entries from purge_intent where task_id = %s", [self._run.task_id])
        if not rows:
            return []
        self._announced_by = rows[0][0]
        return [Found(*entry) for entry in json.loads(zlib.decompress(rows[0][1]))]

    def announce(self, found: Sequence[Found]) -> None:
        """Record that these files will be removed. Raises Superseded if another attempt has started."""
        self._announced_by = self._run.number
        if self._run.number is not None:
            # compressed JSON, not jsonb: names of files need not be valid Unicode
            entries = zlib.compress(json.dumps([astuple(each) for each in found]).encode(), 1)
            if not fetch(_ANNOUNCE, [entries, self._run.task_id, self._run.number]):
                raise Superseded

    def settle(self, gone: Sequence[Found]) -> None:
        """Count the announced files that are removed. Raises Superseded if another attempt has started.

        An earlier attempt that goes on must not count its files: the current one has read that announcement and counts
        what both of them removed.
        """
        tally = Tally.of(gone)
        if self._run.number is not None:
            files = [each for each in gone if not each.is_folder] if self._keeps_paths() else []
            parameters: dict[str, Any] = {
                "id": self._run.task_id,
                "attempt": self._announced_by,
                "present": self._run.number,
                "paths": [each.path.encode(errors="backslashreplace").decode() for each in files],
                "sizes": [each.size for each in files],
                "most": config.current().deletion.purge_ledger_paths,
                **asdict(tally),
            }
            if not fetch(_SETTLE, parameters):
                raise Superseded
        self.total += tally

    def close(self) -> None:
        """Record that nothing is left."""
        execute("update purge_ledger set finished_at = now() where task_id = %s and attempt = %s", self._key)

    @property
    def _key(self) -> list[object]:
        return [self._run.task_id, self._run.number]

    def _keeps_paths(self) -> bool:
        return config.current().deletion.purge_ledger == "paths"


_OPEN = "insert into purge_ledger (task_id, attempt, location) values (%s, %s, %s)"
_TOTAL = """
    select coalesce(sum(files), 0)::bigint, coalesce(sum(bytes), 0)::bigint, coalesce(sum(folders), 0)::bigint
    from purge_ledger where task_id = %s
"""
# locks the task's row: an attempt that begins meanwhile waits for it and then reads this announcement
_ANNOUNCE = """
    insert into purge_intent (task_id, attempt, entries)
    select id, attempt, %s from task where id = %s and attempt = %s and outcome is null for update
    returning attempt
"""
# also locks the task's row: an earlier attempt settles either before the current one reads the announcement, or never
_SETTLE = """
    with present as (
        select id from task where id = %(id)s and attempt = %(present)s for share
    ),
    settled as (
        delete from purge_intent i using present where i.task_id = present.id and i.attempt = %(attempt)s
        returning i.task_id, i.attempt
    ),
    kept as (
        select %(most)s - coalesce(sum(files), 0) as room from purge_ledger where task_id = %(id)s
    ),
    listed as (
        insert into purge_ledger_path (task_id, attempt, path, bytes)
        select settled.task_id, settled.attempt, file.path, file.size
        from settled, kept, unnest(%(paths)s::text[], %(sizes)s::bigint[]) with ordinality as file (path, size, number)
        where file.number <= kept.room
    )
    update purge_ledger counted
    set files = files + %(files)s, bytes = bytes + %(bytes)s, folders = folders + %(folders)s
    from settled where counted.task_id = settled.task_id and counted.attempt = settled.attempt
    returning 1
"""
