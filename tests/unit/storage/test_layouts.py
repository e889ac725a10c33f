from typing import Any
from uuid import UUID

import pytest

from lakewarden.errors import BadRequest
from lakewarden.storage.profiles import parse_profile

ID = UUID("0198c0de-0000-7000-8000-000000000001")
BASE = "file:///lake"


def profile(layout: Any) -> Any:
    return parse_profile({"type": "local", "base-path": "/lake", "storage-layout": layout})


def full(namespace: str, tabular: str) -> dict[str, str]:
    return {"type": "full-hierarchy", "namespace": namespace, "tabular": tabular}


@pytest.mark.parametrize(
    ("layout", "namespace", "inner", "table"),
    [
        (None, f"{BASE}/{ID}", f"{BASE}/{ID}", f"a/{ID}"),
        ({"type": "default"}, f"{BASE}/{ID}", f"{BASE}/{ID}", f"a/{ID}"),
        (full("{name}", "t={name}-{uuid}"), f"{BASE}/a%20b", "above/a%20b", f"a/t=a%20b-{ID}"),
        (full("{uuid}", "{name}"), f"{BASE}/{ID}", f"above/{ID}", "a/a%20b"),
        ({"type": "tabular-only", "tabular": "{name}.{uuid}"}, BASE, BASE, f"a/a%20b.{ID}"),
    ],
)
def test_locations_follow_the_layout(layout: Any, namespace: str, inner: str, table: str) -> None:
    found = profile(layout).layout
    assert found.namespace_location(None, base=BASE, name="a b", uuid=ID) == namespace
    assert found.namespace_location("above", base=BASE, name="a b", uuid=ID) == inner
    assert found.tabular_location("a", name="a b", uuid=ID) == table


@pytest.mark.parametrize("name", ["a/b", "{uuid}", "%2e%2e/x", "a\\b", "ü", "a+b"])
def test_a_name_is_one_folder(name: str) -> None:
    found = profile(full("{name}", "{name}")).layout.tabular_location("a", name=name, uuid=ID)
    assert found.count("/") == 1
    assert str(ID) not in found
    assert found.isascii()


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"type": "flat"}, "storage-layout.*'default', 'full-hierarchy', 'tabular-only'"),
        ("default", "storage-layout"),
        ({"type": "default", "tabular": "{uuid}"}, "storage-layout.default.tabular"),
        ({"type": "full-hierarchy", "tabular": "{uuid}"}, "storage-layout.full-hierarchy.namespace"),
        (full("plain", "{uuid}"), r"namespace: 'plain' is not a valid template: it must contain \{uuid\} or \{name\}"),
        (full("{name}/x", "{uuid}"), "namespace: .* is not a valid template"),
        (full("{name}", "{uuid}{x}"), "tabular: .* is not a valid template"),
        (full("{name}", "{uuid}" + "x" * 250), "tabular: String should have at most 255 characters"),
        ({"type": "tabular-only", "tabular": "{name}"}, r"tabular: '\{name\}' must contain \{uuid\}"),
    ],
)
def test_a_bad_layout_is_refused_with_its_field(layout: Any, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        profile(layout)


def test_a_profile_says_only_what_was_set() -> None:
    assert parse_profile({"type": "local", "base-path": "/lake"}).dump() == {"type": "local", "base-path": "/lake"}
    told = profile(full("{name}", "{uuid}")).dump()
    assert told["storage-layout"] == full("{name}", "{uuid}")
    assert parse_profile(told).dump() == told


def test_another_layout_is_not_another_place() -> None:
    assert profile(None).field_moved_by(profile({"type": "tabular-only", "tabular": "{uuid}"})) is None
