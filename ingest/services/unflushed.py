"""Change data that is in the log and in no table yet: a warehouse is not deleted with it unless somebody insists."""

from typing import Final

from lakewarden.errors import WarehouseNotEmpty
from lakewarden.prepared_statements import fetch
from tenants.models import Warehouse


def ensure_none(warehouse: Warehouse) -> None:
    """To be called in the transaction that deletes the warehouse: nothing is appended until its end.

    Raises WarehouseNotEmpty.
    """
    for batches, events in fetch(_WAITING, [warehouse.id]):
        raise WarehouseNotEmpty(
            f"The warehouse {warehouse.name!r} has {events} events of change data in {batches} batches that are not in "
            "tables yet: flush them (POST /lakehouse/w/<warehouse>/flush), or drop them with force=true"
        )


_WAITING: Final = """
    with head as (select * from ingest_log_head where warehouse_id = %s for update)
    select buffered_batches, buffered_events from head where buffered_batches > 0
"""
