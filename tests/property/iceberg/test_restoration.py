"""The way back after random commits: the earlier state as far as its snapshots are there, in a document that is whole."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from catalog.iceberg import tables
from catalog.iceberg.tables import TableMetadata
from lakewarden.errors import LakewardenError
from tests.property.iceberg.commits import CommitMaker, Document
from tests.property.iceberg.sequences import NOW, QUICK, UUID, check_whole, commit, create, document

STEPS = 8


def entry(found: Document, members: str, key: str, current: str) -> Any:
    (one,) = [each for each in found[members] if each[key] == found[current]]
    return {name: value for name, value in one.items() if name != key}


def state(metadata: TableMetadata, known: set[int]) -> Document:
    """What comes back, with those branches and tags whose snapshots are `known`."""
    found = document(metadata)
    return {
        "schema": entry(found, "schemas", "schema-id", "current-schema-id"),
        "spec": entry(found, "partition-specs", "spec-id", "default-spec-id"),
        "order": entry(found, "sort-orders", "order-id", "default-sort-order-id"),
        "properties": found["properties"],
        "refs": {name: each for name, each in found["refs"].items() if each["snapshot-id"] in known},
    }


@QUICK
@given(rng=st.randoms(use_true_random=False), version=st.integers(1, 3), to=st.integers(0, STEPS))
def test_the_way_back_leads_to_the_earlier_state(rng: random.Random, version: int, to: int) -> None:
    versions, maker = [create(rng, version)], CommitMaker(rng)
    for step in range(STEPS):
        _, updates = maker.commit(document(versions[-1]))
        if any(each["action"] == "upgrade-format-version" for each in updates):
            continue  # it never goes back, and limits specs, types and snapshots
        try:
            versions.append(commit(versions[-1], [], updates, step))
        except LakewardenError:
            continue
    now, then = versions[-1], versions[min(to, len(versions) - 1)]
    back = tables.way_back(now, TableMetadata.read_file(then.encode()))
    made = tables.commit(
        now, [], back.updates, base_location="s3://b/t/metadata/now.metadata.json", now_ms=NOW + STEPS, new_uuid=UUID
    )
    check_whole(made)
    known = {each["snapshot-id"] for each in document(now)["snapshots"]}
    assert set(back.expired.values()).isdisjoint(known)
    restored, wanted = state(made, known), state(then, known)
    for name in back.expired:  # stays where it is now, if it is there
        restored["refs"].pop(name, None)
    assert restored == wanted
    before, after = document(now), document(made)
    assert [each["snapshot-id"] for each in after["snapshots"]] == [each["snapshot-id"] for each in before["snapshots"]]
    for mark in ("last-column-id", "last-partition-id", "last-sequence-number"):
        assert after.get(mark, 0) == before.get(mark, 0)
    if made is not now:
        assert made.metadata_files[-1] == "s3://b/t/metadata/now.metadata.json"
