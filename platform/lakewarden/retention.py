"""Removes old rows in batches, each a transaction of its own: whoever writes meanwhile never waits for long."""

from collections.abc import Mapping
from typing import Final

from lakewarden.prepared_statements import fetch

BATCH: Final = 5000


def forget(table: str, *, first: str, expired: str, parameters: Mapping[str, object]) -> int:
    """Remove the rows of `table` for which `expired` holds, in the order of `first`; returns how many went.

    All three are SQL of our own, never a caller's. `first` needs an index, and what is expired comes first in it.
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
