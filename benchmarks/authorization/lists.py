"""What lists cost whoever sees a part only: requests, and the plan of the filter."""

import psycopg

from benchmarks.authorization.filling import PROJECT, Filled, filled, forget, known, run
from benchmarks.authorization.installation import told
from benchmarks.authorization.server import InProcess, Request, Timed, together

TABLES = 10_000
OWNED = 100_000
FIRSTS = 22
"""First requests of each list; two of them only warm up."""
Row = tuple[str, str, Timed, Timed | None]
_ROLE = "role:00000000-0000-0000-0000-0000000000aa"
_IN_ROLE = """
    insert into authz_membership (role_id, member_id, project_id, added_by, created_at)
    values (%(role)s, 'oidc~member', %(project)s, 'oidc~admin', now())
"""


def measure(server: InProcess, *, rounds: int, owned: int = OWNED) -> tuple[list[Row], list[str]]:
    """Rows of (caller, list, cost of the first request after a change of rights, cost when everything is known), and
    the plans of the filters for the user who owns most.
    """
    tall, wide = filled(server, "tall", count=TABLES, each=10), filled(server, "wide", count=TABLES, each=TABLES)
    far = filled(server, "far", count=owned, each=100)
    known(server, "hundred", "half", "member", "landlord", "reader")
    for place in (tall, wide):
        place.allow("oidc~hundred", step=100)
        place.allow("oidc~half", step=2)
        place.allow(_ROLE, step=2)
    run(server.url, _IN_ROLE, {"role": _ROLE, "project": PROJECT})
    far.allow("oidc~landlord", step=1, privilege="ownership")
    tall.allow("oidc~landlord", step=10_000)  # one, so that the user has a right in the project
    if (repaired := told()) is not None:
        print(f"OpenFGA was told {repaired[0]:,} rights in {repaired[1]:.1f} s\n", flush=True)
    everything = {"writes": [{"privilege": "describe", "principal": {"user": "oidc~reader"}}]}
    for place in (tall, wide):
        server.call("admin", "POST", f"/management/v1/warehouse/{place.id}/grants", everything)
    rows = [
        row
        for user, about in (
            ("reader", "sees everything"),
            ("hundred", "100 tables"),
            ("half", "5,000 tables"),
            ("member", "5,000 tables by a role"),
            ("landlord", f"1 table here, owns {owned:,} elsewhere"),
        )
        for row in _of(server, (user, about), (tall, wide), rounds=rounds)
    ]
    rows += _owner(server, far, rounds, owned)
    rows.append(
        (
            f"owns {owned:,} elsewhere",
            "a namespace that he does not see, not known yet",
            _unseen(server, tall, rounds),
            None,
        )
    )
    return rows, _plans(server, tall, far)


def _of(server: InProcess, who: tuple[str, str], places: tuple[Filled, Filled], *, rounds: int) -> list[Row]:
    (user, about), (tall, wide) = who, places
    asked = {
        "1,000 namespaces, all": tall.base,
        "1,000 namespaces, first 100": f"{tall.base}?pageSize=100",
        "10 tables of a namespace": f"{tall.base}/n0/tables",
        "warehouses": "/management/v1/warehouse",
    }
    if user != "landlord":
        asked |= {"10,000 tables, all": f"{wide.base}/n0/tables"}
        asked |= {"10,000 tables, first 100": f"{wide.base}/n0/tables?pageSize=100"}
    return [(about, name, *_both(server, (user, "GET", path, None), rounds)) for name, path in asked.items()]


def _owner(server: InProcess, far: Filled, rounds: int, owned: int) -> list[Row]:
    about = f"owns {owned:,} tables, one by one"
    asked = {"1,000 namespaces, all": far.base, "1,000 namespaces, first 100": f"{far.base}?pageSize=100"}
    asked |= {"100 tables of a namespace": f"{far.base}/n0/tables", "warehouses": "/management/v1/warehouse"}
    return [(about, name, *_both(server, ("landlord", "GET", path, None), rounds)) for name, path in asked.items()]


def _both(server: InProcess, asked: Request, rounds: int) -> tuple[Timed, Timed]:
    """When nothing is known of rights, as after any change of one; and when everything is."""
    firsts = []
    for _ in range(FIRSTS):
        forget(server.url)
        firsts.append(server.timed([asked], warm_up=0))
    return together(firsts), server.timed([asked] * rounds)


def _unseen(server: InProcess, tall: Filled, rounds: int) -> Timed:
    from catalog.access import namespace_chain  # noqa: PLC0415 needs the app registry
    from catalog.models import Namespace  # noqa: PLC0415 as above
    from lakewarden import backends  # noqa: PLC0415 as above
    from lakewarden.authz.interface import Principal  # noqa: PLC0415 as above
    from lakewarden.context import PrincipalId  # noqa: PLC0415 as above

    chain = namespace_chain(Namespace.objects.select_related("warehouse").get(warehouse_id=tall.id, path_key="n7"))
    authorizer, principal = backends.authorizer(), Principal(PrincipalId("oidc~landlord"))
    return server.spent([lambda: authorizer.privileges(principal, chain)] * rounds, warm_up=10)


def _plans(server: InProcess, tall: Filled, far: Filled) -> list[str]:
    from catalog.models import namespace  # noqa: PLC0415 needs the app registry
    from lakewarden.authz.ledger import visible_objects  # noqa: PLC0415 as above

    statement = namespace._TOP.format(filter=f"and id in ({visible_objects.NAMESPACES})")  # noqa: SLF001 it is what is explained
    found = []
    with psycopg.connect(server.url, autocommit=True) as connection:
        for who, place in (("half", tall), ("landlord", tall), ("landlord", far)):
            told = {"warehouse": place.id, "parent": None, "after": "", "limit": 100, "within": place.id}
            rows = connection.execute(
                f"explain (analyze, costs off, summary on) {statement}".encode(),
                {**told, "principals": [f"oidc~{who}"], "project": PROJECT},
            ).fetchall()
            found += [f"namespaces of {place.name}, first 100, for {who}:", *(f"  {line}" for (line,) in rows), ""]
    return found
