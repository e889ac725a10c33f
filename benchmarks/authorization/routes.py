"""What a warm request of each main route asks of Postgres and of the authorizer; and what grants cost."""

import statistics

from benchmarks.authorization.filling import SCHEMA, known
from benchmarks.authorization.server import ADMIN, InProcess, Json, Timed

_COMMIT: Json = {"requirements": [], "updates": []}
_ENTRIES = 100


def warm(server: InProcess, *, rounds: int) -> list[tuple[str, Timed]]:
    """The main routes, as an engine with rights on the warehouse calls them; each name with its cost."""
    known(server, "engine")
    base, warehouse = _warehouse(server, "main")
    entries = [{"privilege": each, "principal": {"user": "oidc~engine"}} for each in ("create", "modify")]
    server.call(ADMIN, "POST", f"{warehouse}/grants", {"writes": entries})
    server.call("engine", "POST", f"{base}/namespaces", {"namespace": ["sales"]})
    tables = f"{base}/namespaces/sales/tables"
    server.call("engine", "POST", tables, {"name": "orders", "schema": SCHEMA})
    asked: list[tuple[str, str, Json | None, int]] = [
        ("GET", "/catalog/v1/config?warehouse=main", None, 200),
        ("GET", f"{tables}/orders", None, 200),
        ("HEAD", f"{tables}/orders", None, 204),
        ("GET", tables, None, 200),
        ("GET", f"{base}/namespaces", None, 200),
        ("GET", f"{base}/namespaces/sales", None, 200),
        ("GET", f"{tables}/orders/credentials", None, 200),
        ("POST", f"{tables}/orders", _COMMIT, 200),
    ]
    return [
        (
            f"{method} {path.replace(base, '…')}",
            server.timed([("engine", method, path, body)] * rounds, expect=status),
        )
        for method, path, body, status in asked
    ]


def changes(server: InProcess, *, rounds: int) -> list[tuple[str, Timed]]:
    """Grants and revocations of one and of a hundred rights on a table, and the next decision."""
    people = [f"person-{number}" for number in range(_ENTRIES)]
    known(server, *people)
    base, warehouse = _warehouse(server, "given")
    server.call(ADMIN, "POST", f"{base}/namespaces", {"namespace": ["sales"]})
    tables = f"{base}/namespaces/sales/tables"
    server.call(ADMIN, "POST", tables, {"name": "orders", "schema": SCHEMA})
    table_id = server.call(ADMIN, "GET", f"{tables}?returnUuids=true")["table-uuids"][0]
    grants = f"{warehouse}/table/{table_id}/grants"
    found = []
    for some in (people[:1], people):
        entries = [{"privilege": "select", "principal": {"user": f"oidc~{name}"}} for name in some]
        give, take = (ADMIN, "POST", grants, {"writes": entries}), (ADMIN, "POST", grants, {"deletes": entries})
        costs: dict[str, list[Timed]] = {"grant": [], "revocation": []}
        for _ in range(rounds):
            costs["grant"].append(server.timed([give], warm_up=0, expect=204))
            costs["revocation"].append(server.timed([take], warm_up=0, expect=204))
        found += [(f"{name} of {len(some)}", _together(times)) for name, times in costs.items()]
    reads = []
    load = (people[0], "GET", f"{tables}/orders", None)
    for number in range(2 * rounds):
        side = "deletes" if number % 2 else "writes"
        entry = {"privilege": "select", "principal": {"user": f"oidc~{people[0]}"}}
        server.call(ADMIN, "POST", grants, {side: [entry]})
        read = server.timed([load], warm_up=0, expect=404 if number % 2 else 200)
        reads += [] if number % 2 else [read]
    return [*found, ("load of a table after a grant (nothing known)", _together(reads))]


def _together(times: list[Timed]) -> Timed:
    ordered = sorted(each.median for each in times[2:])
    middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    cpu = statistics.mean(each.cpu for each in times[2:])
    return Timed(middle, late, cpu, times[-1].statements, times[-1].questions)


def _warehouse(server: InProcess, name: str) -> tuple[str, str]:
    """Where a new one is served, and where it is managed."""
    body = {
        "warehouse-name": name,
        "storage-profile": {"type": "local", "base-path": str(server.directory / name)},
    }
    identifier = server.call(ADMIN, "POST", "/management/v1/warehouse", body)["id"]
    return f"/catalog/v1/{identifier}", f"/management/v1/warehouse/{identifier}"
