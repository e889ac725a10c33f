"""Changes of who holds what on a warehouse; each makes the project's cached decisions stale at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import GRANTABLE, Privilege
from lakewarden.context import PrincipalId
from lakewarden.errors import BadRequest
from lakewarden.events.changes import Change, record
from lakewarden.transactions import changing
from tenants.access import warehouse_chain
from tenants.models import Warehouse
from tenants.services import projects

MAX_ENTRIES = 100


@dataclass(frozen=True, slots=True)
class GrantEntry:
    principal: PrincipalId
    privilege: Privilege


def on_warehouse(granted: Granted[Warehouse]) -> list[GrantEntry]:
    return [GrantEntry(*pair) for pair in ledger.on(warehouse_chain(granted.target)[-1])]


def apply_to_warehouse(
    granted: Granted[Warehouse], *, writes: Sequence[GrantEntry], deletes: Sequence[GrantEntry]
) -> None:
    """Add and remove grants, all or none; idempotent.

    Raises BadRequest for more than 100 entries, a privilege that warehouses do not have, or an entry on both sides.
    """
    _check(writes, deletes)
    warehouse, context = granted.target, granted.context
    ref = warehouse_chain(warehouse)[-1]
    with changing():
        ledger.add(
            ref,
            [(entry.principal, entry.privilege) for entry in writes],
            project_id=warehouse.project_id,
            granted_by=context.actor.id,
        )
        ledger.remove(ref, [(entry.principal, entry.privilege) for entry in deletes])
        projects.bump_epoch(warehouse.project_id)
        data = {"writes": _plain(writes), "deletes": _plain(deletes)}
        record(Change("updateGrants", "warehouse", str(warehouse.id), warehouse.project_id, data), context)


def _check(writes: Sequence[GrantEntry], deletes: Sequence[GrantEntry]) -> None:
    if len(writes) + len(deletes) > MAX_ENTRIES:
        raise BadRequest(f"{len(writes) + len(deletes)} grants in one request: at most {MAX_ENTRIES} are allowed")
    known = GRANTABLE[ObjectType.WAREHOUSE]
    for entry in (*writes, *deletes):
        if entry.privilege not in known:
            raise BadRequest(f"{entry.privilege} cannot be granted on a warehouse: one of {', '.join(sorted(known))}")
    if both := set(writes) & set(deletes):
        raise BadRequest(f"{next(iter(both)).privilege} of {next(iter(both)).principal} is both written and deleted")


def _plain(entries: Sequence[GrantEntry]) -> list[dict[str, str]]:
    return [{"privilege": entry.privilege.value, "principal": entry.principal} for entry in entries]
