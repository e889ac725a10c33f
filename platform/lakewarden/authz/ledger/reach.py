"""Whether somebody has a right on anything that lies in an object; for authorizers, to show the way to it."""

from collections.abc import Iterable

from lakewarden.context import PrincipalId
from lakewarden.prepared import fetch


def anything_in(principals: Iterable[PrincipalId], object_id: str) -> bool:
    """Whether one of the very principals (roles of roles are not looked up) has a right on something in the object."""
    return bool(fetch(_ANYTHING_IN, [list(principals), object_id]))


_ANYTHING_IN = "select 1 from authz_grant where principal_id = any(%s::text[]) and %s = any(ancestors) limit 1"
