"""Updates of partition specs and sort orders."""

from itertools import count

from msgspec import Raw

from catalog.iceberg import partition_specs, sort_orders
from catalog.iceberg.table_draft import TableDraft, or_last_added
from catalog.iceberg.wire import Int32, Wire
from lakewarden.errors import InvalidArgument


class AddSpec(Wire):
    spec: Raw


class SetDefaultSpec(Wire):
    spec_id: Int32


class RemovePartitionSpecs(Wire):
    spec_ids: list[Int32]


class AddSortOrder(Wire):
    sort_order: Raw


class SetDefaultSortOrder(Wire):
    sort_order_id: Int32


def add_spec(draft: TableDraft, update: AddSpec) -> None:
    """Add a partition spec, bound to the current schema, unless the table has an equal one.

    A field without an id gets the id that its source and transform had before, or the next free one.
    """
    sent = partition_specs.read(update.spec, "spec")
    schema = draft.current_schema()
    partition_specs.check_names(sent, schema)
    partition_specs.check_sources(sent, schema)
    equal = draft.specs.find_equal(sent.shape)
    if equal is not None:
        # in the same commit, -1 stands for the last *added* spec: one that the table already had does not count
        draft.last_added_spec = equal if draft.last_added_spec in draft.added_specs else None
        return
    spec_id = draft.specs.next_id(0)
    field_ids = _field_ids(draft, sent)
    raw = partition_specs.with_ids(update.spec, spec_id, field_ids, "spec")
    spec = partition_specs.read(raw, "spec")
    if draft.format_version < partition_specs.FIRST_VERSION_WITH_FREE_IDS:
        partition_specs.check_sequential(spec)
    draft.put("last-partition-id", max(draft.long("last-partition-id"), spec.last_field_id))
    draft.specs.add(spec_id, spec, raw, shape=spec.shape)
    draft.partition_field_ids.add(spec)
    draft.last_added_spec = spec_id
    draft.added_specs.add(spec_id)
    draft.changed = True


def _field_ids(draft: TableDraft, spec: partition_specs.PartitionSpec) -> list[int]:
    """The client's field ids; a field without one gets an id that no other field of the table has."""
    taken = {each.field_id for each in spec.fields}
    free = count(draft.long("last-partition-id") + 1)
    field_ids = []
    for each in spec.fields:
        field_id = each.field_id
        if field_id is None:
            # an equal field of an earlier spec has its id in files and manifests, and engines join specs by these ids
            field_id = draft.partition_field_ids.find(each)
            if field_id is None or field_id in taken:
                field_id = next(new_id for new_id in free if new_id not in taken)
            taken.add(field_id)
        field_ids.append(field_id)
    return field_ids


def set_default_spec(draft: TableDraft, update: SetDefaultSpec) -> None:
    """Make a spec the default one; -1 stands for the last spec that this commit added."""
    spec_id = or_last_added(update.spec_id, draft.last_added_spec, "spec")
    if spec_id == draft.long("default-spec-id"):
        return
    # whether the spec exists is checked at the end of the commit: a later update may still change schema and spec
    draft.put("default-spec-id", spec_id)
    draft.changed = draft.layout_changed = True


def remove_partition_specs(draft: TableDraft, update: RemovePartitionSpecs) -> None:
    """Remove specs. The client must know that no file uses them; the default spec cannot be removed."""
    removed = set(update.spec_ids)
    if draft.long("default-spec-id") in removed:
        raise InvalidArgument("Cannot remove the default partition spec")
    if removed:
        for each in removed & draft.specs.keys():
            draft.partition_field_ids.remove(draft.specs[each])
        draft.specs.remove(removed)
        draft.changed = True


def add_sort_order(draft: TableDraft, update: AddSortOrder) -> None:
    """Add a sort order, bound to the current schema, unless the table has an equal one."""
    order = sort_orders.read(update.sort_order, "sort-order")
    sort_orders.check_sources(order, draft.current_schema())
    order_id = _same_or_next_order_id(draft, order)
    if order_id in draft.orders:
        draft.last_added_order = order_id if draft.last_added_order in draft.added_orders else None
        return
    raw = sort_orders.with_id(update.sort_order, order_id, "sort-order")
    draft.orders.add(order_id, order, raw, shape=order.fields)
    draft.last_added_order = order_id
    draft.added_orders.add(order_id)
    draft.changed = True


def _same_or_next_order_id(draft: TableDraft, order: sort_orders.SortOrder) -> int:
    # the specification reserves id 0 for the unsorted order
    if order.is_unsorted:
        return sort_orders.UNSORTED_ID
    equal = draft.orders.find_equal(order.fields)
    return draft.orders.next_id(sort_orders.FIRST_ID) if equal is None else equal


def set_default_sort_order(draft: TableDraft, update: SetDefaultSortOrder) -> None:
    """Make a sort order the default one; -1 stands for the last order that this commit added."""
    order_id = or_last_added(update.sort_order_id, draft.last_added_order, "sort order")
    if order_id == draft.long("default-sort-order-id"):
        return
    draft.put("default-sort-order-id", order_id)
    draft.changed = draft.layout_changed = True
