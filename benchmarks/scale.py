"""Postgres CPU of the catalog's own queries with 1,000 and with 1,000,000 tables: `python -m benchmarks.scale --help`.

The rows are made in the database directly (1,000 tables a namespace); what is measured is what the server asks.
"""

import argparse
import hashlib
import os
import statistics
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg

from benchmarks.machine.processes import cpu_ns, stat_of
from lakewarden.prepared_statements import Parameters
from lakewarden.storage.places import around, range_below
from standalone.postgres import EmbeddedPostgres

WAREHOUSE = uuid.UUID(int=1)
FILL = """
    insert into project (id, name, name_key, authz_epoch, created_at) values ('p', 'p', 'p', 0, now())
        on conflict do nothing;
    insert into warehouse (id, project_id, name, name_key, status, storage_profile, location, delete_profile, version,
                           created_at)
        values ('00000000-0000-0000-0000-000000000001', 'p', 'w', 'w', 'active', '{}', 'file:///w', '{}', 0, now())
        on conflict do nothing;
    insert into namespace (id, warehouse_id, path, path_key, name_key, lineage, properties, version, created_at)
        select md5('n' || g)::uuid, '00000000-0000-0000-0000-000000000001', array['n' || g], 'n' || g, 'n' || g,
               array[md5('n' || g)::uuid], '{}', 0, now()
        from generate_series(0, %(last)s / 1000) g on conflict do nothing;
    insert into tabular (id, warehouse_id, namespace_id, kind, name, name_key, uuid, location, metadata_location,
                         version, created_at, updated_at)
        select md5('t' || g)::uuid, '00000000-0000-0000-0000-000000000001', md5('n' || g / 1000)::uuid, 'table',
               't' || g, 't' || g, md5('t' || g)::uuid, 'file:///w/n' || g / 1000 || '/' || md5('t' || g),
               'file:///w/m', 1, now(), now()
        from generate_series(0, %(last)s) g on conflict do nothing;
    insert into tabular_document (tabular_id, version, content, crc, length)
        select id, 1, decode(repeat('ab', 1100), 'hex'), 1, 4300 from tabular on conflict do nothing;
"""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--tables",
        type=int,
        nargs="+",
        default=[1_000, 1_000_000],
        help="sizes, smallest first; a million takes minutes",
    )
    arguments.add_argument("--calls", type=int, default=2000, help="calls of each query in a round (five rounds)")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="lw-scale-") as directory:
        Path(directory).chmod(0o711)
        with EmbeddedPostgres(Path(directory), durable=False, settings={"shared_buffers": "2GB"}) as server:
            _migrate(server.url)
            results = [_measure(server.url, size, options.calls) for size in options.tables]
    _report(options.tables, results)
    return 0


def _migrate(url: str) -> None:
    os.environ["LAKEWARDEN__DATABASE__URL"] = url
    os.environ["DJANGO_SETTINGS_MODULE"] = "lakewarden.settings"
    import django  # noqa: PLC0415 settings are read from the environment that was just set

    django.setup()
    from lakewarden.schema_version import migrate  # noqa: PLC0415 as above

    migrate(verbosity=0)


def _queries(size: int) -> dict[str, tuple[str, Callable[[int], Parameters]]]:
    from catalog.models import occupied_locations, tabular  # noqa: PLC0415 needs the app registry
    from catalog.services import hot_queries  # noqa: PLC0415 as above

    def place(number: int) -> tuple[str, str]:
        chosen = (number * 7919) % size
        return f"n{chosen // 1000}", f"t{chosen}"

    return {
        "look-up of a table": (
            hot_queries.TABULARS.statement.text,
            lambda number: [[WAREHOUSE], [place(number)[0]], [place(number)[1]]],
        ),
        "page of 100 tables, middle": (
            hot_queries.TABLE_NAMES.statement.text,
            lambda number: [[WAREHOUSE], [place(number)[0]], [place(number)[1]], [101], [None], [None]],
        ),
        "table with document": (
            tabular._WITH_DOCUMENT,  # noqa: SLF001 the statement itself is what is measured
            lambda number: [uuid.UUID(_md5(place(number)[1]))],
        ),
        "overlap of a new location": (
            occupied_locations._OVERLAPPING,  # noqa: SLF001 as above
            lambda number: {
                "in": WAREHOUSE,
                "but": None,
                "at": around(f"file:///w/x{number}"),
                "most": occupied_locations.MOST_FOUND,
                **range_below(f"file:///w/x{number}"),
            },
        ),
    }


def _md5(text: str) -> str:
    """As Postgres made the ids."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _measure(url: str, size: int, calls: int) -> dict[str, float]:
    """Microseconds of the backend's CPU for each query: the median of five rounds."""
    print(f"{size:,} tables …", file=sys.stderr)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FILL.replace("%(last)s", str(size - 1)).encode())
        connection.execute(b"vacuum analyze")
        return {
            name: _rounds(connection, statement, parameters, calls)
            for name, (statement, parameters) in _queries(size).items()
        }


def _rounds(
    connection: psycopg.Connection, statement: str, parameters: Callable[[int], Parameters], calls: int
) -> float:
    found: list[float] = []
    for turn in range(6):
        before = _cpu_ns(connection)
        for number in range(calls):
            connection.execute(statement.encode(), parameters(turn * calls + number), prepare=True, binary=True)
        found.append((_cpu_ns(connection) - before) / calls / 1e3)
    return statistics.median(found[1:])  # the first round warms up


def _cpu_ns(connection: psycopg.Connection) -> int:
    stat = stat_of(connection.info.backend_pid)
    return cpu_ns([stat] if stat else [])


def _report(sizes: Sequence[int], results: Sequence[dict[str, float]]) -> None:
    print("| query | " + " | ".join(f"{size:,} tables, µs" for size in sizes) + " | ratio |")
    print("|---" * (len(sizes) + 2) + "|")
    for name in results[0]:
        values = [result[name] for result in results]
        print(f"| {name} | " + " | ".join(f"{value:.0f}" for value in values) + f" | {values[-1] / values[0]:.2f} |")


if __name__ == "__main__":
    sys.exit(main())
