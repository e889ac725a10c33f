"""What two servers drop at once: a right that a dropped object gave is gone on both, whoever dropped which."""

from tests.integration.replicas.pair import SCHEMA, Lake, Pair

ROUNDS = 25


def test_nobody_sees_a_place_whose_last_tables_two_servers_drop_at_once(pair: Pair, lake: Lake) -> None:
    """Each drop alone would leave the reader a table in the namespace, and so need not make decisions unknown."""
    sales, (reader, *_) = lake.path("namespaces", "sales"), pair.people
    lake.add_namespace("sales")
    for number in range(ROUNDS):
        names = [f"left-{number}", f"right-{number}"]
        for name in names:
            table = lake.add_table("sales", name)
            pair.a.done("POST", f"{lake.managed}/table/{table}/grants", {"writes": [reader.entry("select")]})
        assert pair.statuses(reader, "HEAD", sales) in {(204, 204), (403, 403)}
        paths = [lake.tables("sales", name) for name in names]
        drops = [each.call(pair.admin, "DELETE", path) for each, path in zip(pair.both, paths, strict=True)]
        assert [answer.status for answer in pair.ask(drops)] == [204, 204]
        assert pair.statuses(reader, "HEAD", sales) == (404, 404), number


def test_one_of_two_servers_drops_a_table(pair: Pair, lake: Lake) -> None:
    lake.add_namespace("sales")
    for number in range(ROUNDS):
        path = lake.tables("sales", f"t{number}")
        pair.a.done("POST", lake.tables("sales"), {"name": f"t{number}", "schema": SCHEMA})
        assert sorted(pair.statuses(pair.admin, "DELETE", path)) == [204, 404]


def test_changes_of_properties_by_two_servers_are_all_kept(pair: Pair, lake: Lake) -> None:
    lake.add_namespace("sales")
    path = lake.path("namespaces", "sales", "properties")
    calls = [
        pair.both[number % 2].call(pair.admin, "POST", path, {"updates": {f"k{number}": str(number)}})
        for number in range(40)
    ]
    assert {answer.status for answer in pair.ask(calls)} == {200}
    kept = pair.b.done("GET", lake.path("namespaces", "sales"))["properties"]
    assert {name: value for name, value in kept.items() if name != "location"} == {f"k{n}": str(n) for n in range(40)}
