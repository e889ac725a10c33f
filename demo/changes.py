"""`python -m demo.changes --ready-file F`: streams the changes of one day's flights, and shows what becomes of them.

Flights are announced as scheduled. Delays are updates, cancellations deletes. A pipeline must run beside the server.
"""

import argparse
import csv
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import RESTError

from demo.connection import Connection
from demo.report import Report
from demo.source import MISSING, csv_file
from ingest.client import ChangeEvent, ClientCredentials, IngestClient
from lakewarden.errors import InternalError, LakewardenError, RequestTimedOut, Unavailable

NAMESPACE: Final = "nyc_live"
TABLE: Final = "departures"
_BATCH: Final = 200
_PATIENCE_S: Final = 300.0
_NUMBERS: Final = ("dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay", "flight")
_LATER: Final = ("dep_time", "dep_delay", "arr_time", "arr_delay")
"""What is known only after the flight."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Day:
    """The flights of the first day of 2013, as they were flown."""

    flights: Sequence[Row]

    @property
    def flown(self) -> list[Row]:
        return [row for row in self.flights if row["dep_time"] is not None]

    def announced(self) -> Iterator[tuple[str, Mapping[str, Row]]]:
        for row in self.flights:
            yield "INSERT", {"after": row | dict.fromkeys(_LATER)}

    def changed(self) -> Iterator[tuple[str, Mapping[str, Row]]]:
        for row in self.flights:
            if row["dep_time"] is None:
                yield "DELETE", {"before": row}
            else:
                yield "UPDATE", {"after": row}


def read_day(path: Path) -> Day:
    with path.open(encoding="utf-8", newline="") as file:
        first = takewhile(lambda row: (row["month"], row["day"]) == ("1", "1"), csv.DictReader(file))
        return Day([_flight(row) for row in first])


def _flight(row: Mapping[str, str]) -> Row:
    kept = {name: None if row[name] == MISSING else row[name] for name in ("carrier", "origin", "dest", "tailnum")}
    numbers = {name: None if row[name] == MISSING else int(row[name]) for name in _NUMBERS}
    return {**kept, **numbers}


def run(connection: Connection, report: Report) -> None:
    """Raises LakewardenError. A pipeline that needs too long is said: nothing is lost, and the rest has been shown."""
    day = read_day(csv_file("flights"))
    began = time.time_ns() // 1000  # sequences grow from run to run
    try:
        catalog = load_catalog(connection.catalog.name, **connection.catalog.properties())
        catalog.create_namespace_if_not_exists(NAMESPACE, {"lakewarden.cdc.mode": "both"})
        with IngestClient(
            connection.catalog_uri.removesuffix("/catalog") + "/lakehouse",
            source=f"demo-{began}",
            token=_token(connection),
            warehouse=connection.warehouse.name,
        ) as client:
            _stream(client, catalog, day, report, began=began)
    except RequestTimedOut as error:
        report.say(f"  {error.message}")
        report.say("  The changes are durable in the log, and will be in the tables when the pipeline is ready.")
    except (OSError, RESTError) as error:
        raise Unavailable(f"PyIceberg could not read what was streamed: {error}") from error


def _stream(client: IngestClient, catalog: Catalog, day: Day, report: Report, *, began: int) -> None:
    report.heading("Rows change while they are read")
    with report.step(f"Announce {len(day.flights)} flights over the gateway, as scheduled"):
        _send(client, day.announced(), day, first=began)
    with report.step(f"The pipeline (Spark) starts, and writes {NAMESPACE}.{TABLE} and {TABLE}_current"):
        _flush(client)
    sent = time.monotonic()
    with report.step("Send delays as updates, cancellations as deletes"):
        _send(client, day.changed(), day, first=began + len(day.flights))
        durable_s = time.monotonic() - sent
    with report.step("Both tables show them"):
        _flush(client)
        log = _log(catalog, began)
        seen_s = time.monotonic() - sent
    mirror = catalog.load_table(f"{NAMESPACE}.{TABLE}_current").scan().to_arrow()
    counts = {each["values"]: each["counts"] for each in pc.value_counts(log["_cdc_operation"]).to_pylist()}
    _ensure_right(day, counts, mirror)
    rows = [(operation.lower(), counts[operation]) for operation in ("INSERT", "UPDATE", "DELETE")]
    report.table((f"{TABLE}, the change log", "rows"), rows)
    report.table((f"{TABLE}_current, the mirror", "rows"), [("flights as they are now", mirror.num_rows)])
    report.say(
        f"  The changes were durable after {durable_s * 1000:,.0f} ms, and seen in the tables {seen_s:.1f} s after "
        "they were sent."
    )


def _send(client: IngestClient, changes: Iterator[tuple[str, Mapping[str, Row]]], day: Day, *, first: int) -> None:
    now = time.time_ns() // 1_000_000
    events = [
        ChangeEvent(
            sequence=first + number,
            timestamp=now,
            operation=operation,  # type: ignore[arg-type]  # one of three words
            table=f"{NAMESPACE}.{TABLE}",
            row_id="{carrier}-{flight}-{origin}-{sched_dep_time}".format(**day.flights[number]),
            **members,
        )
        for number, (operation, members) in enumerate(changes)
    ]
    for begin in range(0, len(events), _BATCH):
        client.send(events[begin : begin + _BATCH])
    client.wait()


def _flush(client: IngestClient) -> None:
    """Raises RequestTimedOut: the pipeline needs some seconds to start."""
    deadline = time.monotonic() + _PATIENCE_S
    while not (found := client.flush()).success:
        if time.monotonic() > deadline:
            raise RequestTimedOut(f"The pipeline has not written the changes after {_PATIENCE_S:.0f} s: {found.error}")
        time.sleep(0.5)


def _log(catalog: Catalog, began: int) -> pa.Table:
    table = catalog.load_table(f"{NAMESPACE}.{TABLE}")
    return table.scan(f"_cdc_sequence >= {began}", selected_fields=("_cdc_operation",)).to_arrow()


def _ensure_right(day: Day, counts: Mapping[str, int], mirror: pa.Table) -> None:
    """Raises InternalError unless log and mirror hold exactly what was sent."""
    cancelled = len(day.flights) - len(day.flown)
    expected = {"INSERT": len(day.flights), "UPDATE": len(day.flown), "DELETE": cancelled}
    delays = sum(row["arr_delay"] or 0 for row in day.flown)
    found = (counts, mirror.num_rows, pc.sum(mirror["arr_delay"]).as_py())
    if found != (expected, len(day.flown), delays):
        raise InternalError(f"The tables differ from what was sent: {found} instead of {(expected, delays)}.")


def _token(connection: Connection) -> ClientCredentials:
    engine = connection.engine
    return ClientCredentials(connection.token_endpoint, engine.client_id, engine.client_secret, scope=engine.scope)


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo.changes", description="Streams changes to a running Lakewarden.")
    parser.add_argument("--ready-file", type=Path, required=True, help="the JSON file of `lakewarden dev`")
    arguments = parser.parse_args()
    try:
        run(Connection.read(arguments.ready_file), Report(sys.stdout))
    except LakewardenError as error:
        sys.stderr.write(f"\nThe demo stopped: {error.message}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
