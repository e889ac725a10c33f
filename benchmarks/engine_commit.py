"""Measures commits by the metadata engine: decode the base, check, apply, encode; CPU time per commit.

Usage: python benchmarks/engine_commit.py [--snapshots 1000] [--columns 200] [--rounds 200]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from catalog.iceberg import tables

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
NOW_MS = 1_760_000_000_000
Update = dict[str, Any]


def snapshot(number: int) -> Update:
    """One append of a busy table, with the summary that engines write."""
    counts = {
        f"{kind}-{what}": str(number * 17) for kind in ("added", "total") for what in ("files", "records", "rows")
    }
    summary = {"operation": "append", "spark.app.id": "app-20261121-0001", "engine-name": "spark", **counts}
    summary |= {"total-delete-files": "0", "total-equality-deletes": "0", "iceberg-version": "Apache Iceberg 1.11.0"}
    path = f"s3://bucket/warehouse/db/table/metadata/snap-{number}-1-{UUID}.avro"
    found: Update = {"sequence-number": number, "snapshot-id": 5_000_000_000_000_000_000 + number}
    found |= {"timestamp-ms": NOW_MS - 10**7 + number, "summary": summary, "manifest-list": path, "schema-id": 0}
    if number > 1:
        found["parent-snapshot-id"] = 5_000_000_000_000_000_000 + number - 1
    return found


def append(number: int) -> list[bytes]:
    """The updates of an append to main."""
    new = snapshot(number)
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": new["snapshot-id"]}
    return [json.dumps(each).encode() for each in ({"action": "add-snapshot", "snapshot": new}, ref)]


def table(snapshots: int, columns: int) -> bytes:
    """A document with this many snapshots and columns."""
    fields = [
        {"id": each, "name": f"column_{each}", "required": False, "type": "string", "doc": "what it means"}
        for each in range(1, columns + 1)
    ]
    request = json.dumps({"name": "t", "schema": {"type": "struct", "fields": fields}}).encode()
    metadata = tables.create(request, uuid=UUID, location="s3://bucket/warehouse/db/table", now_ms=NOW_MS)
    document = json.loads(metadata.encode())
    document["snapshots"] = [snapshot(number) for number in range(1, snapshots + 1)]
    last = document["snapshots"][-1]
    document["snapshot-log"] = [
        {"timestamp-ms": each["timestamp-ms"], "snapshot-id": each["snapshot-id"]} for each in document["snapshots"]
    ]
    document["metadata-log"] = [
        {"timestamp-ms": NOW_MS - 1000 + each, "metadata-file": f"s3://bucket/warehouse/db/table/metadata/{each}.json"}
        for each in range(100)
    ]
    document |= {"refs": {"main": {"snapshot-id": last["snapshot-id"], "type": "branch"}}}
    document |= {"current-snapshot-id": last["snapshot-id"], "last-sequence-number": snapshots}
    return tables.TableMetadata.read_file(json.dumps(document, separators=(",", ":")).encode()).encode()


def measure(name: str, rounds: int, run: Callable[[], object]) -> None:
    """Print the median and the 95th percentile of `run`, in microseconds of CPU."""
    times = []
    for _ in range(rounds):
        start = time.process_time_ns()
        run()
        times.append((time.process_time_ns() - start) / 1000)
    times.sort()
    print(f"{name:38} median {statistics.median(times):8.0f} us   p95 {times[int(rounds * 0.95)]:8.0f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snapshots", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    stored = table(options.snapshots, options.columns)
    print(f"document: {len(stored)} bytes, {options.snapshots} snapshots, {options.columns} columns")
    current = tables.TableMetadata.decode(stored).current_snapshot_id
    required = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": current}
    requirements = [json.dumps(each).encode() for each in ({"type": "assert-table-uuid", "uuid": UUID}, required)]

    def commit(updates: list[bytes]) -> bytes:
        base = tables.TableMetadata.decode(stored)
        new = tables.commit(base, requirements, updates, base_location="s3://b/base.json", now_ms=NOW_MS, new_uuid=UUID)
        return new.encode()

    properties = [json.dumps({"action": "set-properties", "updates": {"owner": "finance"}}).encode()]
    field = {"id": options.columns + 1, "name": "added", "required": False, "type": "long"}
    schema = json.loads(stored)["schemas"][0]
    schema["fields"].append(field)
    evolve = [
        json.dumps(each).encode()
        for each in (
            {"action": "add-schema", "schema": schema},
            {"action": "set-current-schema", "schema-id": -1},
        )
    ]
    old = [each["snapshot-id"] for each in json.loads(stored)["snapshots"][: options.snapshots // 2]]
    expire = [json.dumps({"action": "remove-snapshots", "snapshot-ids": old}).encode()]
    added = append(options.snapshots + 1)
    measure("decode + one attribute", options.rounds, lambda: tables.TableMetadata.decode(stored).location)
    measure("set-properties", options.rounds, lambda: commit(properties))
    measure("add-snapshot + set-snapshot-ref", options.rounds, lambda: commit(added))
    measure("add-schema + set-current-schema", options.rounds, lambda: commit(evolve))
    measure("remove-snapshots (half of them)", options.rounds, lambda: commit(expire))
    referenced = tables.TableMetadata.decode(stored)
    measure("snapshots=refs", options.rounds, lambda: referenced.with_referenced_snapshots_only().encode())
    measure("read_file", max(1, options.rounds // 10), lambda: tables.TableMetadata.read_file(stored))


if __name__ == "__main__":
    main()
