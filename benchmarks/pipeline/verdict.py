"""Reads the tables with PyIceberg, which shares no code with the writer, and compares them with the changes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import Table

from benchmarks.pipeline.changes import Changes
from pipeline.jobs.metadata import TO_POSITION


@dataclass(slots=True)
class Verdict:
    """`ages`: seconds from an event's timestamp to the commit of the snapshot that shows it, in the change logs."""

    events: int = 0
    rows: int = 0
    snapshots: int = 0
    files: int = 0
    problems: list[str] = field(default_factory=list)
    ages: list[Any] = field(default_factory=list, repr=False)

    def percentile(self, part: float, *, warm_up_s: float = 0.0) -> float:
        """Over all events but those that were due in the first seconds."""
        times, ages = (pa.chunked_array(column) for column in zip(*self.ages, strict=True))
        counted = ages.filter(pc.greater_equal(times, pc.add(pc.min(times), warm_up_s)))
        return float(pc.quantile(counted, q=part / 100)[0].as_py())


def judged(catalog: RestCatalog, changes: Changes, *, has_mirror: bool) -> Verdict:
    verdict = Verdict()
    for number in range(changes.tables):
        _judge_log(catalog.load_table((changes.namespace, f"t{number}")), number, changes, verdict)
        if has_mirror:
            _judge_mirror(catalog.load_table((changes.namespace, f"t{number}_current")), number, changes, verdict)
    return verdict


def _judge_log(table: Table, number: int, changes: Changes, verdict: Verdict) -> None:
    found = table.scan(selected_fields=("_cdc_sequence", "_cdc_operation", "_cdc_row_id", "n")).to_arrow()
    sequences, expected = set(found["_cdc_sequence"].to_pylist()), set(changes.of_table(number))
    missing, doubled = len(expected - sequences), found.num_rows - len(sequences)
    if missing or doubled or sequences - expected:
        verdict.problems.append(
            f"t{number}: {missing:,} events are missing, {doubled:,} are doubled, {len(sequences - expected):,} were "
            "never sent"
        )
    if not pc.all(pc.equal(found["_cdc_sequence"], found["n"])).as_py():
        verdict.problems.append(f"t{number}: a row is not that of its event")
    verdict.events += found.num_rows
    verdict.ages += _ages(table, verdict)
    verdict.files += len(list(table.scan().plan_files()))


def _judge_mirror(table: Table, number: int, changes: Changes, verdict: Verdict) -> None:
    found = table.scan(selected_fields=("_cdc_row_id", "n")).to_arrow()
    rows = dict(zip(found["_cdc_row_id"].to_pylist(), found["n"].to_pylist(), strict=True))
    replayed = changes.replayed(number)
    if len(rows) != found.num_rows or rows != replayed:
        wrong = sum(rows.get(row) != last for row, last in (replayed | rows).items())
        wrong += sum(row not in replayed for row in rows)
        verdict.problems.append(f"t{number}_current: {wrong:,} of {len(replayed):,} rows are not those of a replay")
    verdict.rows += found.num_rows


def _ages(table: Table, verdict: Verdict) -> Iterator[tuple[Any, Any]]:
    """(timestamps, ages) of the events in the files that each snapshot of the pipeline added."""
    for snapshot in table.metadata.snapshots:
        if snapshot.summary is None or TO_POSITION not in snapshot.summary.additional_properties:
            continue
        verdict.snapshots += 1
        for manifest in snapshot.manifests(table.io):
            if manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            for entry in manifest.fetch_manifest_entry(table.io):
                if entry.status == ManifestEntryStatus.ADDED:
                    times = _timestamps(table, entry.data_file.file_path)
                    yield times, pc.subtract(snapshot.timestamp_ms / 1000, times)


def _timestamps(table: Table, path: str) -> pa.Array:
    with table.io.new_input(path).open() as content:
        column = pq.read_table(pa.PythonFile(content, mode="r"), columns=["_cdc_timestamp"])["_cdc_timestamp"]
    return pc.divide(column.cast(pa.int64()).cast(pa.float64()), 1e6).combine_chunks()
