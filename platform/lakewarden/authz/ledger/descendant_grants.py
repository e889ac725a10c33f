"""Finds out whether a principal has a grant on anything inside an object, which makes the object visible to them."""

from collections.abc import Iterable, Sequence
from typing import Final

from lakewarden.context import PrincipalId
from lakewarden.prepared_statements import fetch

# The `ancestors` of everything inside an object begin with the object's path. So it is enough to read the first index
# entry at or after that path and to compare its beginning.
ANYTHING_OF: Final = """
    select 1 from principal s cross join lateral (
        select g.ancestors from authz_grant g where g.principal_id = s.id and g.ancestors >= %s::text[]
        order by g.ancestors limit 1
    ) g where g.ancestors[:cardinality(%s::text[])] = %s::text[] limit 1
"""
"""Follows `with principal(id)`; the parameters are the object's path (project first, itself last), three times."""


def anything_in(principals: Iterable[PrincipalId], path: Sequence[str]) -> bool:
    """Whether one of the principals has a grant on something inside the object at the path.

    Roles of the principals are not looked up. False for the empty path: grants inside do not make the server visible.
    """
    return bool(path) and bool(fetch(_ANYTHING_IN, [list(principals), list(path), list(path), list(path)]))


_ANYTHING_IN = f"with principal(id) as (select unnest(%s::text[])) {ANYTHING_OF}"
