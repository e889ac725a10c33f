"""Owners and members of a role changed by one request, as the permissions API writes them."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.authz.interface import Granted
from lakewarden.context import PrincipalId
from lakewarden.transactions import changing
from tenants.models import Role
from tenants.services import grants, role_members
from tenants.services.grants import GrantEntry


@dataclass(frozen=True, slots=True)
class Difference:
    """Who is to own the role, or to be in it, from now on; or no more."""

    owners: Sequence[GrantEntry] = ()
    members: Sequence[PrincipalId] = ()


def apply(granted: Granted[Role], *, writes: Difference, deletes: Difference) -> None:
    """Add and remove, all or none. The caller may manage the role's assignments; raises as the verbs of each do."""
    with changing():
        if writes.owners or deletes.owners:
            grants.apply(granted, writes=writes.owners, deletes=deletes.owners)
        if writes.members:
            role_members.add(granted, writes.members)
        for member in deletes.members:
            role_members.remove(granted, member)
