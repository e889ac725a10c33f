"""Random sequences of commits: the document stays whole, an independent model and pyiceberg read the same."""

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.metadata import TableMetadataUtil

from catalog.iceberg import tables
from catalog.iceberg.tables import TableMetadata
from lakewarden.errors import BadRequest, CommitFailed, LakewardenError
from tests.property.iceberg.commits import CommitMaker, Document
from tests.property.iceberg.model import Model
from tests.property.iceberg.sequences import NOW, QUICK, UUID, check_whole, commit, create, document


@QUICK
@given(rng=st.randoms(use_true_random=False), version=st.integers(1, 3))
def test_any_sequence_of_commits_leaves_a_whole_document(rng: random.Random, version: int) -> None:
    metadata, maker = create(rng, version), CommitMaker(rng)
    for step in range(8):
        before = metadata.encode()
        requirements, updates = maker.commit(document(metadata))
        try:
            made = commit(metadata, requirements, updates, step)
        except (BadRequest, CommitFailed):
            assert metadata.encode() == before
            continue
        assert metadata.encode() == before
        if made is not metadata:
            assert made.metadata_files[-1] == f"s3://b/t/metadata/{step}.metadata.json"
            assert made.last_updated_ms >= metadata.last_updated_ms
        check_whole(made)
        metadata = made


@QUICK
@given(rng=st.randoms(use_true_random=False), version=st.integers(1, 3))
def test_metadata_that_is_kept_is_what_would_be_read(rng: random.Random, version: int) -> None:
    """Commits start from the sealed result of the one before, or from its JSON: it makes no difference."""
    kept, maker = create(rng, version), CommitMaker(rng)
    for step in range(8):
        read = TableMetadata.decode(kept.encode())
        requirements, updates = maker.commit(document(kept))
        outcomes: list[bytes | str] = []
        for base in (kept, read):
            try:
                made = commit(base, requirements, updates, step)
            except LakewardenError as error:
                outcomes.append(repr(error))
                continue
            encoded, sealed = made.sealed()
            assert encoded == made.encode() == sealed.encode()
            outcomes.append(encoded)
            kept = sealed if base is kept else kept
        assert outcomes[0] == outcomes[1]


@QUICK
@given(rng=st.randoms(use_true_random=False), version=st.integers(1, 3))
def test_an_independent_model_agrees_on_refs_snapshots_and_logs(rng: random.Random, version: int) -> None:
    metadata, maker = create(rng, version), CommitMaker(rng)
    model = Model(version)
    for step in range(8):
        _, updates = maker.commit(document(metadata))
        try:
            made = commit(metadata, [], updates, step)
        except LakewardenError:
            continue
        model = model.after(updates, now_ms=max(NOW + step, metadata.last_updated_ms))
        assert Model.of(document(made)) == model
        metadata = made


@QUICK
@given(rng=st.randoms(use_true_random=False), version=st.integers(1, 2))
def test_pyiceberg_reads_back_what_was_committed(rng: random.Random, version: int) -> None:
    metadata, maker = create(rng, version), CommitMaker(rng)
    for step in range(6):
        requirements, updates = maker.commit(document(metadata))
        updates = [each for each in updates if each.get("format-version") != 3]
        try:
            metadata = commit(metadata, requirements, updates, step)
        except LakewardenError:
            continue
    found = document(metadata)
    read = TableMetadataUtil.parse_raw(metadata.encode().decode())
    assert str(read.table_uuid) == found["table-uuid"]
    assert (read.location, read.properties) == (found["location"], found["properties"])
    assert [each.snapshot_id for each in read.snapshots] == [each["snapshot-id"] for each in found["snapshots"]]
    assert (read.current_snapshot_id or -1) == found["current-snapshot-id"]
    refs = {name: each.snapshot_id for name, each in read.refs.items()}
    assert refs == {name: each["snapshot-id"] for name, each in found["refs"].items()}
    log = [(each.snapshot_id, each.timestamp_ms) for each in read.snapshot_log]
    assert log == [(each["snapshot-id"], each["timestamp-ms"]) for each in found["snapshot-log"]]
    assert [each.metadata_file for each in read.metadata_log] == metadata.metadata_files
    assert [_plain(each) for each in read.schemas] == [_without_empty(each) for each in found["schemas"]]
    assert [_plain(each) for each in read.partition_specs] == found["partition-specs"]
    assert [_plain(each) for each in read.sort_orders] == found["sort-orders"]
    assert (read.current_schema_id, read.default_spec_id) == (found["current-schema-id"], found["default-spec-id"])
    assert (read.last_column_id, read.last_partition_id) == (found["last-column-id"], found["last-partition-id"])


def _plain(read: Any) -> Document:
    found: Document = json.loads(read.model_dump_json())
    return _without_empty(found)


def _without_empty(schema: Document) -> Document:
    found = copy.deepcopy(schema)
    if not found.get("identifier-field-ids"):
        found.pop("identifier-field-ids", None)
    text = json.dumps(found).replace("decimal(9,2)", "decimal(9, 2)")
    plain: Document = json.loads(text)
    return plain


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@settings(QUICK, max_examples=300)
@given(rng=st.randoms(use_true_random=False), version=st.integers(1, 3), junk=JUNK)
def test_junk_anywhere_in_a_commit_is_refused_or_harmless(rng: random.Random, version: int, junk: object) -> None:
    metadata, maker = create(rng, version), CommitMaker(rng)
    requirements, updates = maker.commit(document(metadata))
    wrong: list[Document] = [{"action": "set-properties", "updates": {}}, *requirements, *updates]
    _replace_one(rng, wrong, junk)
    wrong_requirements = [each for each in wrong if not isinstance(each, dict) or "action" not in each]
    wrong_updates = [each for each in wrong if isinstance(each, dict) and "action" in each]
    try:
        made = commit(metadata, wrong_requirements, wrong_updates, 1)
    except (BadRequest, CommitFailed):
        return
    check_whole(made)


def _replace_one(rng: random.Random, value: Any, junk: object) -> None:
    """Put `junk` in some place of a tree of lists and dicts."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = rng.choice(keys)
    if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.8:
        _replace_one(rng, value[key], junk)
    elif isinstance(value, dict) and rng.random() < 0.2:
        del value[key]
    else:
        value[key] = junk


@QUICK
@given(text=st.binary(max_size=60) | JUNK.map(lambda each: json.dumps(each).encode()))
def test_any_bytes_in_place_of_an_update_or_a_file_are_refused_with_a_message(text: bytes) -> None:
    base = create(random.Random(1), 2)  # noqa: S311 - only a base to commit to
    with pytest.raises(BadRequest):
        tables.commit(base, [], [text], base_location=None, now_ms=NOW, new_uuid=UUID)
    with pytest.raises(BadRequest):
        tables.commit(base, [text], [], base_location=None, now_ms=NOW, new_uuid=UUID)
    with pytest.raises(BadRequest):
        TableMetadata.read_file(text)
    with pytest.raises(BadRequest):
        tables.create(text, uuid=UUID, location="s3://b/t", now_ms=NOW)
