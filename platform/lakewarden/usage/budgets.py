"""Budgets of rows and bytes that callers may cause in an hour or a day, counted in the database for all replicas."""

from typing import Literal

from lakewarden.prepared_statements import fetch


def spend(budget: str, spender: str, *, amount: int, limit: int, period: Literal["hour", "day"]) -> bool:
    """Count `amount`, in a statement of its own; False when the spender has asked for more than `limit` by now.

    Not for use within a transaction that others wait for: two of one spender wait for each other.
    """
    ((asked,),) = fetch(
        _SPEND, {"budget": budget, "spender": spender, "amount": amount, "limit": limit, "period": period}
    )
    return bool(asked <= limit)


_SPEND = """
    insert into spending as s (budget, spender, period, asked, refused)
    values (%(budget)s, %(spender)s, date_trunc(%(period)s, now(), 'UTC'), %(amount)s::bigint,
            (%(amount)s::bigint > %(limit)s::bigint)::int)
    on conflict (period, budget, spender) do update
    set asked = s.asked + excluded.asked,
        refused = s.refused + (s.asked + excluded.asked > %(limit)s::bigint)::int
    returning asked
"""
