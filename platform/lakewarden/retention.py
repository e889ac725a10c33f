"""Removes old rows in batches, each in a transaction of its own, so writers never wait for long."""

from collections.abc import Mapping
from typing import Final

from lakewarden.prepared_statements import fetch

BATCH: Final = 5000


def forget(table: str, *, first: str, expired: str, parameters: Mapping[str, object]) -> int:
    """Remove the rows of `table` for which the condition `expired` is true, in the order of `first`; returns how many.

    All three are inserted into SQL, so they must never come from a caller. `first` needs an index in which expired rows
    come first.
    """
    statement = f"""
        with oldest as (select ctid, {expired} as expired from {table} order by {first} limit %(batch)s),
             gone as (delete from {table} where ctid = any(array(select ctid from oldest where expired)) returning 1)
        select count(*) from gone
    """  # noqa: S608 names of our own
    removed = 0
    while True:
        ((gone,),) = fetch(statement, {**parameters, "batch": BATCH})
        removed += int(gone)
        if gone < BATCH:
            return removed
