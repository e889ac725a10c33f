"""Server time of each page of the console with many tables: `python -m benchmarks.console --help`.

The tables are put into one warehouse by SQL. Two people ask: an administrator, and one with a right on every hundredth
table, for whom all lists are filtered. The exit code is 1 if the median of a page is above the budget.
"""

import argparse
import os
import re
import sys
from urllib.parse import quote

from benchmarks.authorization.filling import filled, known
from benchmarks.authorization.installation import Installation
from benchmarks.authorization.server import ADMIN, InProcess, Json, Request, Timed, in_process
from benchmarks.console.pages import Ids, addresses
from benchmarks.failures import BenchmarkError
from lakewarden.errors import LakewardenError
from standalone.signals import interrupting

BUDGET_MS = 200
PART = "part"
_REFUSED = {403, 404}
_SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
_VIEW = {
    "version-id": 1,
    "timestamp-ms": 1_700_000_000_000,
    "schema-id": 0,
    "summary": {},
    "default-namespace": ["small"],
    "representations": [{"type": "sql", "sql": "select id from small.orders", "dialect": "spark"}],
}


def main() -> int:
    options = _options()
    try:
        with interrupting(), in_process(Installation()) as server:
            rows = _measured(server, options)
    except (BenchmarkError, LakewardenError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    print("| page | administrator: ms (p95) | CPU ms | statements | a hundredth: ms (p95) | CPU ms | statements |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, times in rows:
        print(f"| {name} | " + " | ".join(_told(each) for each in times) + " |")
    slow = [name for name, times in rows if any(each is not None and each.median > BUDGET_MS for each in times)]
    print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f}. Above {BUDGET_MS} ms: {', '.join(slow) or 'none'}")
    return 1 if slow else 0


def _options() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks.console", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--tables", type=int, default=100_000, help="tables in the warehouse [100000]")
    arguments.add_argument("--each", type=int, default=10_000, help="tables in each namespace [10000]")
    arguments.add_argument("--rounds", type=int, default=20, help="requests for each page [20]")
    arguments.add_argument("--only", default="", help="pages whose address contains this text")
    return arguments.parse_args()


def _measured(server: InProcess, options: argparse.Namespace) -> list[tuple[str, list[Timed | None]]]:
    place = filled(server, "lake", count=options.tables, each=options.each)
    known(server, PART)
    ids = _furnished(server, place.id)
    place.allow(f"oidc~{PART}", step=100)
    cookies = [{"cookie": f"lakewarden-session={_session(who)}"} for who in (ADMIN, PART)]
    rows = []
    for name, path in addresses(ids):
        if options.only in path:
            part = {"hx-request": "true"} if name.startswith("tree-") else {}
            shown = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "…", path)
            rows.append((f"`{shown}`", [_timed(server, path, headers | part, options.rounds) for headers in cookies]))
    return rows


def _timed(server: InProcess, path: str, headers: dict[str, str], rounds: int) -> Timed | None:
    """None where this person may not look."""
    server.headers.clear()
    server.headers.update(headers)
    asked: Request = (ADMIN, "GET", path, None)
    if server.status(asked) in _REFUSED:
        return None
    return server.timed([asked] * (rounds + 3), warm_up=3)


def _session(who: str) -> str:
    from console.services import sessions  # noqa: PLC0415 needs settings
    from console.services.sessions import Tokens  # noqa: PLC0415 as above
    from lakewarden.context import PrincipalId  # noqa: PLC0415 as above

    return sessions.begin(PrincipalId(f"oidc~{who}"), Tokens(access=who, lifetime_s=36_000))


def _furnished(server: InProcess, warehouse: str) -> Ids:
    """Something for each page that is about one thing."""

    def call(path: str, body: Json) -> Json:
        return server.call(ADMIN, "POST", path, body)

    catalog, place = f"/catalog/v1/{warehouse}", "namespaces/small"
    call(f"{catalog}/namespaces", {"namespace": ["small"]})
    created = call(f"{catalog}/{place}/tables", {"name": "orders", "schema": _SCHEMA})
    orders = created["metadata"]
    call(f"{catalog}/{place}/tables/orders", {"requirements": [], "updates": _snapshot(orders)})
    view = {"name": "all_orders", "schema": _SCHEMA, "view-version": _VIEW, "properties": {}}
    all_orders = call(f"{catalog}/{place}/views", view)["metadata"]
    generic = {"name": "pictures", "format": "lance"}
    call(f"/generic/v1/{warehouse}/{place}/generic-tables", generic)
    call(f"{catalog}/{place}/tables", {"name": "gone", "schema": _SCHEMA})
    server.call(ADMIN, "DELETE", f"{catalog}/{place}/tables/gone?purgeRequested=true")
    listed = server.call(ADMIN, "GET", f"{catalog}/namespaces?returnUuids=true&pageSize=1000")
    ids = dict(zip([path[-1] for path in listed["namespaces"]], listed["namespace-uuids"], strict=True))
    found = server.call(ADMIN, "GET", f"/generic/v1/{warehouse}/{place}/generic-tables?returnUuids=true")
    return Ids(
        warehouse,
        ids["n0"],
        ids["small"],
        orders["table-uuid"],
        quote(created["metadata-location"], safe=""),
        all_orders["view-uuid"],
        found["identifiers"][0]["id"],
        call("/management/v1/role", {"name": "analysts"})["id"],
        call(f"/management/v1/warehouse/{warehouse}/task/list", {})["tasks"][0]["task-id"],
    )


def _snapshot(table: Json) -> list[Json]:
    snapshot = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": table["last-updated-ms"] + 1,
        "manifest-list": f"{table['location']}/metadata/snap-7.avro",
        "summary": {"operation": "append", "total-records": "1"},
        "schema-id": 0,
    }
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7}
    return [{"action": "add-snapshot", "snapshot": snapshot}, ref]


def _told(cost: Timed | None) -> str:
    if cost is None:
        return "- | - | -"
    return f"{cost.median:.0f} ({cost.p95:.0f}) | {cost.cpu:.0f} | {cost.statements}"


if __name__ == "__main__":
    sys.exit(main())
