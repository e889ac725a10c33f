"""Budgets for rows and bytes that a caller may cause in an hour or a day, counted in the database for all replicas."""

from typing import Literal

from lakewarden.prepared_statements import fetch


def spend(budget: str, spender: str, *, amount: int, limit: int, period: Literal["hour", "day"]) -> bool:
    """Count `amount` in a statement of its own; returns False if the spender has exceeded `limit` in this period.

    Do not call it in a long transaction: it locks the spender's row until the end of the transaction.
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
