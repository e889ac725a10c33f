import pytest

from lakewarden.errors import InvalidArgument
from lakewarden.names import check_name, match_key


@pytest.mark.parametrize(
    ("one", "other"), [("a", "A"), ("Straße", "STRASSE"), ("é", "e\u0301"), ("ﬁ", "FI"), ("Σ", "ς")]
)
def test_names_without_case_have_one_key(one: str, other: str) -> None:
    assert match_key(one) == match_key(other)


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("a", "a "), ("a", "ä"), ("1", "l"), ("a.b", "a_b")])
def test_other_names_have_other_keys(one: str, other: str) -> None:
    assert match_key(one) != match_key(other)


@pytest.mark.parametrize("name", ["a", "a b", "a.b/c%d+e", "数据", "🦆", "x" * 255, "'", '"', "\\", "\u200bx"])
def test_names_may_be_odd(name: str) -> None:
    assert check_name(name, what="table") == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "empty"),
        ("x" * 256, "256 characters"),
        ("a\n", "control"),
        ("\x00", "control"),
        ("\x7f", "control"),
        ("a\x85b", "control"),
        (" ", "blank"),
        ("\u00a0\u2003", "blank"),
        ("\u200b", "blank"),
        ("\ud800", "surrogate"),
    ],
)
def test_names_that_cannot_be_carried_are_refused(name: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words) as caught:
        check_name(name, what="table")
    assert "table name" in caught.value.message
