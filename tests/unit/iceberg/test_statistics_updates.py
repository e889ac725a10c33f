"""Statistics files and partition statistics files: one of each per snapshot."""

import pytest

from lakewarden.errors import BadRequest
from tests.unit.iceberg.documents import Document, appended, commit, document


def file(snapshot_id: int, path: str, **members: object) -> Document:
    return {"snapshot-id": snapshot_id, "statistics-path": path, "file-size-in-bytes": 5, **members}


BLOB = {"type": "apache-datasketches-theta-v1", "snapshot-id": 1, "sequence-number": 1, "fields": [1]}
FULL = {"file-footer-size-in-bytes": 2, "blob-metadata": [BLOB]}


def set_(kind: str, found: Document) -> Document:
    return {"action": f"set-{kind}", kind: found}


@pytest.mark.parametrize(("kind", "more"), [("statistics", FULL), ("partition-statistics", {})])
def test_set_replaces_the_file_of_its_snapshot_only(kind: str, more: Document) -> None:
    base = commit(appended(1, 2), set_(kind, file(1, "a", **more)), set_(kind, file(2, "b", **more)))
    made = document(commit(base, set_(kind, file(1, "c", x=1, **more))))
    assert sorted(each["statistics-path"] for each in made[kind]) == ["b", "c"]
    assert made[kind][-1]["x"] == 1


@pytest.mark.parametrize(("kind", "more"), [("statistics", FULL), ("partition-statistics", {})])
def test_remove_drops_the_file_and_without_one_changes_nothing(kind: str, more: Document) -> None:
    base = commit(appended(1), set_(kind, file(1, "a", **more)))
    made = commit(base, {"action": f"remove-{kind}", "snapshot-id": 1})
    assert document(made)[kind] == []
    assert commit(made, {"action": f"remove-{kind}", "snapshot-id": 1}) is made


def test_a_file_without_its_footer_size_is_named() -> None:
    wrong = set_("statistics", file(1, "a", **{"blob-metadata": []}))
    with pytest.raises(BadRequest, match=r"\(set-statistics\): statistics: .*`file-footer-size-in-bytes`"):
        commit(appended(1), wrong)


def test_a_blob_without_fields_is_named_with_its_place() -> None:
    blob = {"type": "x", "snapshot-id": 1, "sequence-number": 1}
    wrong = set_("statistics", file(1, "a", **FULL | {"blob-metadata": [BLOB, blob]}))
    with pytest.raises(BadRequest, match=r"`fields` - at `\$.blob-metadata\[1\]`"):
        commit(appended(1), wrong)
