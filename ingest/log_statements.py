"""SQL of the durable log, for the gateway and for the pipeline, which imports no Django: hence texts alone."""

from typing import Final

READ: Final = """
    select position, source_id, sequence_number, received_at, events, bytes, encoding, tables, content
    from ingest_batch where warehouse_id = %(warehouse_id)s and position > %(after)s and position <= %(upto)s
    order by position
"""
"""The batches of a range of positions. All up to the head's `last_position` are there: none appears later."""

MARK_FLUSHED: Final = """
    with head as (
        select flushed_position from ingest_log_head
        where warehouse_id = %(warehouse_id)s and flushed_position < %(upto)s and last_position >= %(upto)s for update
    ),
    flushed as (
        select count(*) as batches, coalesce(sum(b.events), 0) as events, coalesce(sum(b.bytes), 0) as bytes
        from ingest_batch b, head
        where b.warehouse_id = %(warehouse_id)s and b.position > head.flushed_position and b.position <= %(upto)s
    )
    update ingest_log_head h
    set flushed_position = %(upto)s, flushed_at = clock_timestamp(), buffered_batches = h.buffered_batches - f.batches,
        buffered_events = h.buffered_events - f.events, buffered_bytes = h.buffered_bytes - f.bytes
    from head, flushed f where h.warehouse_id = %(warehouse_id)s
    returning f.batches, f.events, f.bytes
"""
"""To be run after the Iceberg commits of everything up to the position. No row: it was marked before, or lies ahead."""
