"""Proves that what was acknowledged is what happened: no commit lost, none applied twice; for scenarios.commits.

Every commit's answer names the metadata file that it made, and every metadata file names those before it. So the
files from the last one back to the first must be exactly those of the answers. The log in a file is bounded (100
entries by default): older ones are read from the files, where these are on this machine, else only the newest
are compared.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.rest_client import Json, RestClient

_SHOWN = 3


@dataclass(slots=True)
class Ledger:
    """One table's: `start` is its metadata file before the slice; `property` values by name as last acknowledged."""

    namespace: str
    table: str
    start: str
    acknowledged: list[str] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    unknown: int = 0

    def check(self, client: RestClient) -> str | None:
        """None, or what does not agree. Up to `unknown` commits may have happened without an answer that says so."""
        loaded = client.load(self.namespace, self.table)
        chain, is_whole = _chain(loaded, self.start)
        wrong = []
        if len(set(self.acknowledged)) != len(self.acknowledged):
            wrong.append("two commits were answered with the same metadata file")
        lost = set(self.acknowledged) - set(chain)
        if is_whole and lost:
            wrong.append(f"{len(lost)} acknowledged commits are not in the table's history: {sorted(lost)[:_SHOWN]}")
        surplus = set(chain) - set(self.acknowledged) - {self.start}
        if len(surplus) > self.unknown:
            wrong.append(f"{len(surplus)} states that no answer spoke of: {sorted(surplus)[:_SHOWN]}")
        found = loaded["metadata"].get("properties", {})
        if not self.unknown:
            stale = {name: found.get(name) for name, value in self.properties.items() if found.get(name) != value}
            if stale:
                wrong.append(f"values that are not the last ones acknowledged: {stale}")
        return f"{self.namespace}.{self.table}: {'; '.join(wrong)}" if wrong else None


def _chain(loaded: Json, start: str) -> tuple[list[str], bool]:
    """The metadata files from the newest back to `start` (left out), and whether it was reached."""
    files = [str(loaded["metadata-location"])]
    metadata: Json = loaded["metadata"]
    while files[-1] != start:
        earlier = [str(entry["metadata-file"]) for entry in reversed(metadata.get("metadata-log", []))]
        if start in earlier:
            return files + earlier[: earlier.index(start)], True
        files += earlier
        oldest = urlsplit(files[-1])
        if not earlier or oldest.scheme != "file" or not Path(oldest.path).is_file():
            return files, False
        metadata = json.loads(Path(oldest.path).read_bytes())
    return files[:-1], True
