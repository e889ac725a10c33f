"""Owners and members of a role changed by one request, as the permissions API writes them."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.authz.interface import Granted
from lakewarden.context import PrincipalId
from lakewarden.db_transaction import changing
from permissions import grants
from permissions.grants import GrantEntry
from tenants.models import Role
from tenants.services import projects, role_members, user_removal
from tenants.services.roles import locked


@dataclass(frozen=True, slots=True)
class Difference:
    """Who is to own the role, or to be in it, from now on; or no more."""

    owners: Sequence[GrantEntry] = ()
    members: Sequence[PrincipalId] = ()


def apply(granted: Granted[Role], *, writes: Difference, deletes: Difference) -> None:
    """Add and remove, all or none. The caller may manage the role's assignments; raises as the verbs of each do."""
    with changing():
        # all that both verbs hold, before the project's row that the first of them takes
        projects.lock_graph(granted.target.project_id)
        locked(granted.target)
        owners = [entry.principal for entry in (*writes.owners, *deletes.owners)]
        user_removal.hold([*owners, *writes.members, *deletes.members])
        if writes.owners or deletes.owners:
            grants.apply(granted, writes=writes.owners, deletes=deletes.owners)
        if writes.members:
            role_members.add(granted, writes.members)
        for member in deletes.members:
            role_members.remove(granted, member)
