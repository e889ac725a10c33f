"""What a warm request of each main route asks of Postgres and of the authorizer; and what grants cost."""

from benchmarks.authorization.filling import SCHEMA, known
from benchmarks.authorization.server import ADMIN, InProcess, Json, Request, Timed, together

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
        found += [(f"{name} of {len(some)}", together(times)) for name, times in costs.items()]
    load = (people[0], "GET", f"{tables}/orders", None)
    return [*found, *_noticed(server, grants, load, rounds=rounds)]


def _noticed(server: InProcess, grants: str, load: Request, *, rounds: int) -> list[tuple[str, Timed]]:
    """Grants and revocations of one right, each with the load after it, whose answer must be the new one."""
    entry = {"privilege": "select", "principal": {"user": f"oidc~{load[0]}"}}
    give, take = ((ADMIN, "POST", grants, {side: [entry]}) for side in ("writes", "deletes"))
    found: dict[str, list[Timed]] = {
        "grant of 1, until the next load answers 200": [],
        "revocation of 1, until the next load answers 404": [],
        "load of a table after a grant (nothing known)": [],
    }

    def change(asked: Request, expect: int) -> None:
        server.expected(asked, 204)
        server.expected(load, expect)

    for _ in range(rounds):
        granted, revoked, first = found.values()
        granted.append(server.spent([lambda: change(give, 200)], warm_up=0))
        revoked.append(server.spent([lambda: change(take, 404)], warm_up=0))
        server.expected(give, 204)
        first.append(server.timed([load], warm_up=0))
        server.expected(take, 204)
    return [(name, together(times)) for name, times in found.items()]


def _warehouse(server: InProcess, name: str) -> tuple[str, str]:
    """Where a new one is served, and where it is managed."""
    body = {
        "warehouse-name": name,
        "storage-profile": {"type": "local", "base-path": str(server.directory / name)},
    }
    identifier = server.call(ADMIN, "POST", "/management/v1/warehouse", body)["id"]
    return f"/catalog/v1/{identifier}", f"/management/v1/warehouse/{identifier}"
