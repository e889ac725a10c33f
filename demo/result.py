"""What the demo's job did, in numbers that a test or a script can check; written as JSON where asked."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Totals:
    """A table at one snapshot: its rows, and the sums of some columns (nulls count as nothing)."""

    rows: int
    sums: dict[str, float]


@dataclass(frozen=True, slots=True)
class DemoResult:
    """`tables` as they are at the end; `versions` of the flights by the name of the moment; times in seconds.

    `snapshots` are the ids of the flights' snapshots of this run, oldest first. `pyiceberg` is what the second
    engine counted in the flights.
    """

    namespace: str
    tables: dict[str, Totals]
    versions: dict[str, Totals]
    snapshots: list[int]
    view_rows: int
    pyiceberg: Totals
    first_query_s: float
    total_s: float

    def write(self, path: Path) -> None:
        """As one JSON object, whole or not at all."""
        partial = path.with_name(f"{path.name}.part")
        partial.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        partial.replace(path)
