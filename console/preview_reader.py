"""Reads the first rows of a table in a process of its own: `python -m console.preview_reader`, for services.preview.

It gets a request on standard input and writes an answer to standard output, both JSON. What it may use is bounded by
the kernel, and it has no settings, keys or connections of the server: only those that the caller may have for the
table's own location.
"""

import os
import resource
import signal
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

MISSING_EXTRA: Final = 3
"""Exit code: PyIceberg or PyArrow is not installed."""


class Wanted(msgspec.Struct, frozen=True):
    """`metadata` is the table's; `properties` reach its files. `local_base` is the folder of a local warehouse."""

    metadata: msgspec.Raw
    location: str
    properties: dict[str, str]
    snapshot_id: int | None
    rows: int
    columns: int
    characters: int
    seconds: int
    memory_bytes: int
    local_base: str | None = None


class Read(msgspec.Struct, frozen=True):
    """`rows` have texts, None for null. `problem`: why there are none."""

    columns: list[tuple[str, str]] = []
    rows: list[list[str | None]] = []
    columns_in_all: int = 0
    problem: str | None = None


def main() -> int:
    wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=Wanted)
    bound(wanted)
    try:
        read = read_table(wanted)
    except ImportError:
        return MISSING_EXTRA
    except MemoryError:
        read = Read(problem="Its rows need more memory than a preview may use")
    except Exception as error:  # noqa: BLE001 whatever a file or a library says is shown to the caller
        read = Read(problem=said(error))
    sys.stdout.buffer.write(msgspec.json.encode(read))
    return 0


def bound(wanted: Wanted) -> None:
    """Limit memory and time by the kernel: what a file makes of itself when it is decompressed is not known before."""
    resource.setrlimit(resource.RLIMIT_AS, (wanted.memory_bytes, wanted.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(wanted.seconds)
    os.nice(10)


def read_table(wanted: Wanted) -> Read:
    from pyiceberg.schema import Schema  # noqa: PLC0415 an extra that need not be there
    from pyiceberg.table.metadata import TableMetadataUtil  # noqa: PLC0415

    from console.preview_files import table_files  # noqa: PLC0415

    metadata = TableMetadataUtil.parse_raw(bytes(wanted.metadata).decode())
    asked = wanted.snapshot_id
    snapshot = metadata.current_snapshot() if asked is None else metadata.snapshot_by_id(asked)
    if snapshot is None:
        return Read(problem="There is no such snapshot" if asked is not None else None)
    full = metadata.schema() if asked is None else schema_of(metadata, snapshot)
    shown = Schema(*full.fields[: wanted.columns], schema_id=full.schema_id)
    files = table_files(wanted)
    found = islice(all_rows(metadata, snapshot, shown, files, limit=wanted.rows), wanted.rows)
    return Read(
        columns=[(field.name, kind(field.field_type)) for field in shown.fields],
        rows=[[cell(value, wanted.characters) for value in row] for row in found],
        columns_in_all=len(full.fields),
    )


def schema_of(metadata: Any, snapshot: Any) -> Any:  # noqa: ANN401 PyIceberg has no types here
    return next((each for each in metadata.schemas if each.schema_id == snapshot.schema_id), metadata.schema())


def kind(of: Any) -> str:  # noqa: ANN401
    """The name of a type, without the fields of structs: the table's schema shows these."""
    if of.is_struct:
        return "struct"
    if hasattr(of, "element_type"):
        return f"list<{kind(of.element_type)}>"
    if hasattr(of, "value_type"):
        return f"map<{kind(of.key_type)}, {kind(of.value_type)}>"
    return str(of)


def all_rows(metadata: Any, snapshot: Any, shown: Any, files: Any, *, limit: int) -> Iterator[list[Any]]:  # noqa: ANN401
    """The rows of the snapshot, file by file: a further file is only read when the rows before it were not enough."""
    from pyiceberg.expressions import AlwaysTrue  # noqa: PLC0415
    from pyiceberg.io.pyarrow import ArrowScan  # noqa: PLC0415

    scan = ArrowScan(metadata, files, shown, AlwaysTrue(), limit=limit)
    for task in tasks(metadata, snapshot, files):
        for batch in scan.to_record_batches([task]):
            names = batch.schema.names
            for row in batch.to_pylist():
                yield [row[name] for name in names]


def tasks(metadata: Any, snapshot: Any, files: Any) -> Iterator[Any]:  # noqa: ANN401
    """Data files with their deletes. Without deletes, manifests are read one by one: a preview needs few of them."""
    from pyiceberg.manifest import ManifestContent  # noqa: PLC0415
    from pyiceberg.table import ManifestGroupPlanner  # noqa: PLC0415

    manifests = snapshot.manifests(files)
    planner = ManifestGroupPlanner(table_metadata=metadata, io=files)
    if any(each.content == ManifestContent.DELETES for each in manifests):
        yield from planner.plan_files(manifests)
        return
    for manifest in manifests:
        yield from planner.plan_files([manifest])


def cell(value: Any, characters: int) -> str | None:  # noqa: ANN401 any value of a row
    if value is None:
        return None
    if isinstance(value, bytes):
        text = "0x" + value[:characters].hex()
    elif isinstance(value, list | dict):
        text = msgspec.json.encode(value, enc_hook=str).decode(errors="replace")
    else:
        text = str(value)
    return text if len(text) <= characters else text[: characters - 1] + "…"


def said(error: Exception) -> str:
    """The first line: libraries put whole requests behind it."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


if __name__ == "__main__":
    sys.exit(main())
