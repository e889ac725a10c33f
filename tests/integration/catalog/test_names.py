"""Names of namespaces, tables and views: any Unicode, stored as written, matched without case, unique without case."""

import unicodedata
from urllib.parse import quote, quote_plus

import pytest

from tests.integration.catalog.lake import Lake, Names, identifier, set_properties

NAMES = [
    "a.b.c",
    ".",
    "..",
    "two  words ",
    "+",
    "a+b",
    "100%",
    "%2F",
    "%1F",
    "%25",
    "a/b//c",
    "/",
    'it\'s "quoted" `so`',
    "back\\slash",
    "a?b=c&d#e;f:g@h",
    "[{(<*>)}]",
    "Ünïcödé",
    "e\u0301 is not composed",
    "数据湖",
    "مستودع",
    "\u202eright-to-left",
    "👩‍👩‍👧‍👦🦆",
    "\U0010ffff",
    "zero\u200bwidth",
    "\u00a0hard blank\u00a0",
    "$where; drop table namespace--",
    "tables",
    "properties",
    "İstanbul ı ſ ß ŉ",
    "x" * 255,
]
ALIKE = [
    ("Orders", "oRDERS"),
    ("Straße", "STRASSE"),
    ("é", "E\u0301"),
    ("Å", "\u212b"),
    ("ΣΑΣ", "σας"),
    ("Ж", "ж"),
    ("İ", "i\u0307"),
    ("Ⓐ", "ⓐ"),
]
DIFFERENT = [("a", "á"), ("i", "ı"), ("1", "①"), ("a b", "a  b"), ("a", "a "), ("а", "a"), ("ﬀx", "ffy")]


def same(found: str, name: str) -> None:
    """Equal to the last code point: neither composed nor folded."""
    assert [ord(each) for each in found] == [ord(each) for each in name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["table", "view"])
def test_any_name_is_created_loaded_listed_renamed_and_dropped(lake: Lake, kind: str, name: str) -> None:
    within = ("sales", name)
    assert lake.create_namespace(*within).json()["namespace"] == list(within)
    create, route = (lake.create_table, lake.table) if kind == "table" else (lake.create_view, lake.view)
    created = create(name, within=within)
    assert created.status == 200, created.body
    assert lake.client.get(route(name, within=within)).json() == created.json()
    assert lake.client.head(route(name, within=within)).status == 204
    listed = lake.client.get(lake.namespace(within, f"{kind}s")).json()["identifiers"]
    assert listed == [identifier(name, within)]
    same(listed[0]["name"], name)

    away = {"source": identifier(name, within), "destination": identifier("plain")}
    back = {"source": identifier("plain"), "destination": identifier(name, within)}
    for move in (away, back):
        assert lake.client.post(lake.path(f"{kind}s", "rename"), move).status == 204
    committed = lake.client.post(route(name, within=within), {"requirements": [], "updates": [set_properties(a="b")]})
    assert committed.json()["metadata"]["properties"]["a"] == "b"
    assert lake.client.delete(route(name, within=within)).status == 204
    assert lake.client.head(route(name, within=within)).status == 404
    assert lake.client.delete(lake.namespace(within)).status == 204


@pytest.mark.parametrize("name", NAMES)
def test_any_namespace_is_a_parent(lake: Lake, name: str) -> None:
    assert lake.create_namespace(name, properties={name: name}).status == 200
    assert lake.create_namespace(name, "child").status == 200
    # encoded once as most clients do, and twice as Java and PyIceberg do
    for parent in (name, quote_plus(name)):
        listed = lake.client.get(lake.path("namespaces", parent=parent)).json()["namespaces"]
        assert listed == [[name, "child"]]
        same(listed[0][0], name)
    told = lake.client.get(lake.namespace((name,))).json()
    assert (told["namespace"], told["properties"][name]) == ([name], name)
    changed = lake.client.post(lake.namespace((name,), "properties"), {"removals": [name]})
    assert changed.json()["removed"] == [name]


def test_levels_are_separated_as_advertised_and_by_the_unit_separator(lake: Lake) -> None:
    config = lake.client.get("/catalog/v1/config?warehouse=lake").json()
    path = ("a.b", "c/d", "é")
    for depth in range(1, 4):
        lake.create_namespace(*path[:depth])
    for separator in {config["overrides"]["namespace-separator"], "%1F", "%1f"}:
        encoded = separator.join(quote(level, safe="") for level in path)
        assert lake.client.get(lake.path("namespaces") + f"/{encoded}").json()["namespace"] == list(path)
        listed = lake.client.get(lake.path("namespaces") + f"?parent={separator.join(map(quote_plus, path[:2]))}")
        assert listed.json()["namespaces"] == [list(path)]
    assert lake.client.get(lake.path("namespaces") + "/a.b.c%2Fd").error()[0] == 404


@pytest.mark.parametrize(("written", "asked"), ALIKE)
def test_names_match_without_case_and_stay_as_written(lake: Lake, written: str, asked: str) -> None:
    assert lake.create_namespace(written).status == 200
    lake.create_table(written, within=written)
    lake.create_view(f"v{written}", within=written)
    assert lake.client.get(lake.namespace(asked)).json()["namespace"] == [written]
    assert lake.client.get(lake.path("namespaces", parent=asked)).json()["namespaces"] == []
    assert lake.load(asked, within=asked)["metadata"]
    assert lake.client.head(lake.view(f"V{asked}", within=asked)).status == 204
    listed = lake.client.get(lake.namespace(asked, "tables")).json()["identifiers"]
    assert listed == [identifier(written, written)]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_names_that_differ_in_case_alone_are_duplicates(lake: Lake, first: str, second: str) -> None:
    exists = (409, "AlreadyExistsException")
    lake.create_namespace(first)
    assert lake.create_namespace(second).error() == exists
    lake.create_table(first)
    lake.create_view(f"view {first}")
    lake.create_table("other")
    lake.create_view("another")
    for name in (second, f"VIEW {second}"):
        assert lake.create_table(name).error() == exists
        assert lake.create_view(name).error() == exists
        for kind, source in (("tables", "other"), ("views", "another")):
            move = {"source": identifier(source), "destination": identifier(name)}
            assert lake.client.post(lake.path(kind, "rename"), move).error() == exists


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_names_that_only_look_alike_are_two(lake: Lake, first: str, second: str) -> None:
    for name in (first, second):
        assert lake.create_namespace(name).status == 200
        assert lake.create_table(name).status == 200
    listed = lake.client.get(lake.namespace("sales", "tables")).json()["identifiers"]
    assert sorted(each["name"] for each in listed) == sorted((first, second))


def test_a_rename_may_change_case_or_composition_alone(lake: Lake) -> None:
    lake.create_view("Café")
    for name in ("CAFÉ", unicodedata.normalize("NFD", "Café")):
        move = {"source": identifier("café"), "destination": identifier(name)}
        assert lake.client.post(lake.path("views", "rename"), move).status == 204
        listed = lake.client.get(lake.namespace("sales", "views")).json()["identifiers"]
        same(listed[0]["name"], name)


@pytest.mark.parametrize("name", ["", " ", "\u2003\u200b", "\x00", "a\x1fb", "tab\t", "\x7f", "a\u0085", "x" * 256])
def test_names_that_cannot_be_are_refused_everywhere(lake: Lake, name: str) -> None:
    lake.create_table("orders")
    lake.create_view("report")
    moves: list[tuple[str, str]] = [("tables", "orders"), ("views", "report")]
    answers = [
        lake.create_namespace(name),
        lake.create_namespace("sales", name),
        lake.create_table(name),
        lake.create_view(name),
        *(
            lake.client.post(lake.path(kind, "rename"), {"source": identifier(source), "destination": identifier(name)})
            for kind, source in moves
        ),
    ]
    assert {answer.error() for answer in answers} == {(400, "IllegalArgumentException")}


@pytest.mark.parametrize("path", [("sales", ""), ("", "sales"), ""])
def test_an_empty_level_is_no_namespace(lake: Lake, path: Names) -> None:
    assert lake.client.get(lake.namespace(path)).status == 404
