import pytest

from catalog.identifiers import NamespaceIdentifier, TabularIdentifier
from catalog.models.namespace import path_key
from lakewarden.storage.places import around


@pytest.mark.parametrize(
    ("text", "path"),
    [("a", ("a",)), ("a\x1fb", ("a", "b")), ("a.b\x1fc d", ("a.b", "c d")), ("", ("",)), ("a\x1f", ("a", ""))],
)
def test_a_namespace_is_split_at_the_separator_alone(text: str, path: tuple[str, ...]) -> None:
    assert NamespaceIdentifier.parse("w", text) == NamespaceIdentifier("w", path)


def test_references_read_as_people_write_them() -> None:
    assert str(TabularIdentifier.parse("w", "a\x1fb", "t")) == "a.b.t"


def test_paths_that_differ_in_case_or_composition_have_one_key() -> None:
    assert path_key(["Straße", "é"]) == path_key(["STRASSE", "e\u0301"])
    assert path_key(["a", "b"]) != path_key(["ab"])
    assert path_key(["a", "b"]) != path_key(["a.b"])


def test_around_names_a_location_and_all_folders_above_it() -> None:
    assert around("file:///a/b/c") == ["file://", "file:///a", "file:///a/b", "file:///a/b/c"]
