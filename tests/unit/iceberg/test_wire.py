"""Hostile and odd JSON: a clear BadRequest, never anything else."""

import pytest

from catalog.iceberg import tables, wire
from lakewarden.errors import BadRequest, LakewardenError
from tests.unit.iceberg.documents import NOW, UUID, create


def commit_raw(update: bytes) -> None:
    tables.commit(create(), [], [update], base_location=None, now_ms=NOW, new_uuid=UUID)


def list_type(depth: int) -> bytes:
    found = b'"int"'
    for each in range(depth):
        found = b'{"type":"list","element-id":%d,"element-required":false,"element":%b}' % (each + 9, found)
    return found


def add_schema(type_: bytes) -> bytes:
    column = b'{"id":1,"name":"a","required":false,"type":' + type_ + b"}"
    return b'{"action":"add-schema","schema":{"type":"struct","fields":[' + column + b"]}}"


@pytest.mark.parametrize(
    "update",
    [
        b'{"action":"set-properties","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"action":"set-properties","x":' + b'{"a":' * 1_000 + b"1" + b"}" * 1_001,
        b'{"action":"set-properties","x":' + b"[" * 1_000_000,
        b'{"action":"set-properties","x":' + b"[[],{}," * 500 + b"1" + b"]" * 500 + b"}",
        add_schema(list_type(5_000)),
        add_schema(list_type(99)),
    ],
)
def test_bottomless_nesting_is_refused(update: bytes) -> None:
    with pytest.raises(BadRequest, match="nested too deeply: at most 100 levels"):
        commit_raw(update)


def test_deep_but_bounded_nesting_is_accepted() -> None:
    commit_raw(add_schema(list_type(95)))


def test_brackets_in_texts_are_no_nesting() -> None:
    commit_raw(b'{"action":"set-properties","updates":{"a":"' + b"[{" * 500 + b'\\"[[[["}}')


@pytest.mark.parametrize(
    "update",
    [b"", b"{", b"nonsense", b'{"action":01}', b'{"a":NaN}', b'{"a":"\\ud800"}', b'{"a":"\\udc00"}', b'{"a":"\x00"}'],
)
def test_what_is_no_json_is_refused(update: bytes) -> None:
    with pytest.raises(BadRequest, match=r"updates\[0\] is not valid JSON"):
        commit_raw(update)


def test_what_is_no_utf8_is_refused_even_where_nobody_looks() -> None:
    with pytest.raises(BadRequest, match=r"updates\[0\] is not valid UTF-8"):
        commit_raw(b'{"action":"set-properties","updates":{},"x":"\xff"}')


@pytest.mark.parametrize("number", [b"9223372036854775808", b"-9223372036854775809", b"1e3", b"1.0", b"99" * 50])
def test_integers_beyond_64_bits_and_fractions_are_refused(number: bytes) -> None:
    with pytest.raises(BadRequest, match=r"updates\[0\] \(remove-statistics\): Expected `int`.*`\$.snapshot-id`"):
        commit_raw(b'{"action":"remove-statistics","snapshot-id":' + number + b"}")


def test_a_quadratic_scan_is_not_possible() -> None:
    with pytest.raises(LakewardenError):
        commit_raw(b'{"action":"x","x":"' + b'\\"' * 2_000_000 + b"[" * 200)


def test_null_is_absent() -> None:
    assert wire.is_null(wire.NULL)
    assert wire.is_null(b"null")
    assert not wire.is_null(b"0")


def test_nesting_that_exhausts_the_stack_is_refused_too() -> None:
    with pytest.raises(BadRequest, match="x is nested too deeply"):
        wire.value(b"[" * 100_000, "x")
