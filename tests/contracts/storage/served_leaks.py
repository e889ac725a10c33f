"""Searches all that a served Lakewarden has written, answers to its administrator, and keeps, for secrets."""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from standalone import accounts
from standalone.postgres import binaries, home
from tests.contracts.storage.marks import SIGNATURES, Marks
from tests.integration.storage.served_lake import WAREHOUSES, ServedLake

_TOLD: Final = (
    "/health",
    WAREHOUSES,
    "/management/v1/audit?pageSize=1000",
    "/management/v1/events?pageSize=1000",
    "/management/v1/openapi.json",
    "/catalog/v1/openapi.json",
)


def leaks(served: ServedLake, secrets: Mapping[str, str], *logs: Path, traces: Iterable[bytes] = ()) -> list[str]:
    """Where which of the `secrets` is; `logs` are those of other processes, `traces` what a collector received."""
    marks = Marks({"the caller's token": served.token, **secrets})
    marks.note("the server's log", served.server.log_text())
    for log in logs:
        marks.note(f"the log {log.name}", log.read_text())
    for body in traces:
        marks.note("a trace", body.decode(errors="replace"))
    found = [f"a signature in {where}" for where, text in marks.seen if SIGNATURES.search(text)]
    for path in _TOLD:
        answer = served.ask("GET", path)
        assert answer.status == 200, (path, answer.data)
        marks.note(f"the answer to {path}", answer.data.decode())
    marks.note("the database", dump(served.server.settings["LAKEWARDEN__DATABASE__URL"]))
    return [*found, *marks.leaks()]


def dump(url: str) -> str:
    programs: Path = binaries.find(accounts.for_server(Path("/")), shared=home.SHARED).folder
    done = subprocess.run([programs / "pg_dump", url], capture_output=True, text=True, check=True, timeout=120)
    assert "COPY public.audit_entry" in done.stdout
    return done.stdout
