"""Changes owners and members of a role in one transaction, as the permissions API sends them."""

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
    """The owners and members to add, or those to remove."""

    owners: Sequence[GrantEntry] = ()
    members: Sequence[PrincipalId] = ()


def apply(granted: Granted[Role], *, writes: Difference, deletes: Difference) -> None:
    """Add and remove owners and members, all or none.

    The caller must be authorized to manage the role's assignments. Raises what `grants.apply` (with
    `must_change`), `role_members.add` and `role_members.remove` raise.
    """
    with changing():
        # everything that the calls below lock, first: `grants.apply` locks the project's row, which comes last in the
        # order
        projects.lock_graph(granted.target.project_id)
        locked(granted.target)
        owners = [entry.principal for entry in (*writes.owners, *deletes.owners)]
        user_removal.hold([*owners, *writes.members, *deletes.members])
        there = frozenset(role_members.everybody_in(granted))
        grants.ensure_changes(there, writes=writes.members, deletes=deletes.members, of=f"role {granted.target.id}")
        if writes.owners or deletes.owners:
            grants.apply(granted, writes=writes.owners, deletes=deletes.owners, must_change=True)
        if writes.members:
            role_members.add(granted, writes.members)
        for member in deletes.members:
            role_members.remove(granted, member)
