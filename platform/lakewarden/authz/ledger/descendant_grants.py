"""Whether somebody has a right on anything that lies in an object; for authorizers, to show the way to it."""

from collections.abc import Iterable, Sequence
from typing import Final

from lakewarden.context import PrincipalId
from lakewarden.prepared_statements import fetch

# what lies in an object has ancestors that begin with its path: the first one behind it in the index tells
ANYTHING_OF: Final = """
    select 1 from principal s cross join lateral (
        select g.ancestors from authz_grant g where g.principal_id = s.id and g.ancestors >= %s::text[]
        order by g.ancestors limit 1
    ) g where g.ancestors[:cardinality(%s::text[])] = %s::text[] limit 1
"""
"""Follows a `with principal(id)`; takes the path of the object, project first and itself last, three times."""


def anything_in(principals: Iterable[PrincipalId], path: Sequence[str]) -> bool:
    """Whether one of the very principals (roles of roles are not looked up) has a right on something at the path.

    Nothing lies at an empty one: the server shows itself to nobody by what is in it.
    """
    return bool(path) and bool(fetch(_ANYTHING_IN, [list(principals), list(path), list(path), list(path)]))


_ANYTHING_IN = f"with principal(id) as (select unnest(%s::text[])) {ANYTHING_OF}"
