"""Finds the updates that lead from a table's metadata back to the state in an earlier version of it.

They are those of any commit, so field ids, sequence numbers and the logs only go forward.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.table_draft import LAST_ADDED, TableDraft

Update = Mapping[str, Any]


class WayBack(NamedTuple):
    """`expired`: the branches and tags of the earlier version whose snapshots are gone, with their ids; no update
    brings them back.
    """

    updates: list[Raw]
    expired: dict[str, int]


def way_back(now: TableDraft, then: TableDraft) -> WayBack:
    """Schema, partitioning, sort order, branches, tags and properties; location and format version stay."""
    expired = {
        name: ref.snapshot_id
        for name in then.refs
        if (ref := then.refs.find(name)) is not None and ref.snapshot_id not in now.snapshots.heads
    }
    found = [*_layout(now, then), *_refs(now, then, expired), *_properties(now, then)]
    return WayBack([wire.dump(each) for each in found], expired)


def _layout(now: TableDraft, then: TableDraft) -> Iterator[Update]:
    # an equal one may have another id by now, and the same id may be another one's
    schema_id, spec_id, order_id = (
        then.long(name) for name in ("current-schema-id", "default-spec-id", "default-sort-order-id")
    )
    equal = now.schemas.find_equal(then.schemas[schema_id].shape)
    if equal is None:
        yield {"action": "add-schema", "schema": then.schemas.raw(schema_id)}
    yield {"action": "set-current-schema", "schema-id": LAST_ADDED if equal is None else equal}
    equal = now.specs.find_equal(then.specs[spec_id].shape)
    if equal is None:
        yield {"action": "add-spec", "spec": then.specs.raw(spec_id)}
    yield {"action": "set-default-spec", "spec-id": LAST_ADDED if equal is None else equal}
    equal = now.orders.find_equal(then.orders[order_id].fields)
    if equal is None:
        yield {"action": "add-sort-order", "sort-order": then.orders.raw(order_id)}
    yield {"action": "set-default-sort-order", "sort-order-id": LAST_ADDED if equal is None else equal}


def _refs(now: TableDraft, then: TableDraft, expired: Mapping[str, int]) -> Iterator[Update]:
    raws = wire.members(then.members["refs"], "refs")
    for name in then.refs:
        if name not in expired and then.refs.find(name) != now.refs.find(name):
            yield {"action": "set-snapshot-ref", "ref-name": name, **wire.members(raws[name], "ref")}
    for name in now.refs:
        if name not in raws:
            yield {"action": "remove-snapshot-ref", "ref-name": name}


def _properties(now: TableDraft, then: TableDraft) -> Iterator[Update]:
    different = {name: value for name, value in then.properties.items() if now.properties.get(name) != value}
    if different:
        yield {"action": "set-properties", "updates": different}
    if added := [name for name in now.properties if name not in then.properties]:
        yield {"action": "remove-properties", "removals": added}
