"""Reads and changes the grants on an object; each change invalidates the project's cached decisions immediately."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django.db import transaction

from catalog.models import namespace, tabular
from catalog.tabular_types import word_of
from lakewarden import quotas
from lakewarden.authz.actions import TABULAR_TYPES, ObjectType
from lakewarden.authz.interface import Granted, ObjectRef
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.ledger.grants import Given
from lakewarden.authz.ledger.models import Grant
from lakewarden.authz.model import GRANTABLE, Privilege, may_grant
from lakewarden.context import ROLE_PREFIX, PrincipalId
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest, Conflict, Forbidden, NoSuchRole, NotFound
from lakewarden.events.change_recording import Change, record
from lakewarden.prepared_statements import fetch
from permissions import public_ids
from tenants.models import Project, Server, project, role, tag_definition, warehouse
from tenants.services import projects, user_removal

MAX_ENTRIES = 100

_PLACES = {
    ObjectType.PROJECT: project.HELD,
    ObjectType.ROLE: role.HELD,
    ObjectType.TAG_DEFINITION: tag_definition.HELD,
    ObjectType.WAREHOUSE: warehouse.HELD,
    ObjectType.NAMESPACE: namespace.HELD,
    **dict.fromkeys(TABULAR_TYPES, tabular.HELD),
}
"""Queries that return the namespaces above an object and lock its row."""


class AssignmentExists(Conflict):
    """An assignment to add is there already. The type is that of the API that the older routes are compatible with."""

    wire_type = "TupleAlreadyExistsError"


class AssignmentMissing(NotFound):
    """An assignment to remove is not there; see `AssignmentExists`."""

    wire_type = "TupleNotFoundError"


@dataclass(frozen=True, slots=True)
class GrantEntry:
    principal: PrincipalId
    privilege: Privilege


def on(granted: Granted[object]) -> list[Given]:
    """All direct grants on the object, sorted by principal and privilege."""
    return [replace(each, ref=granted.ref) for each in ledger.given_on(granted.ref)]


def grantable(kind: ObjectType, held: frozenset[Privilege]) -> dict[Privilege, bool]:
    """Every privilege that can be granted on such an object, and whether the privileges `held` allow granting it."""
    return {each: may_grant(each, held, on=kind) for each in sorted(GRANTABLE[kind])}


def of(granted: Granted[Project], principal: PrincipalId) -> list[Given]:
    """All direct grants to a principal in the project, sorted by object and privilege."""
    held = ledger.given_to(principal, project_id=granted.target.id)
    known = public_ids.known({each.ref for each in held})
    return [replace(each, ref=known[each.ref]) for each in held if each.ref in known]


def apply(
    granted: Granted[object],
    *,
    writes: Sequence[GrantEntry],
    deletes: Sequence[GrantEntry],
    must_change: bool = False,
) -> None:
    """Add and remove grants on the object, all or none. Idempotent, unless each entry `must_change` something.

    Raises BadRequest for more than 100 entries, a privilege that cannot be granted on this type of object, an entry
    that is both added and removed, or a deleted user; Forbidden for a privilege that the caller may not grant;
    NoSuchUser and NoSuchRole for unknown receivers and for roles of another project; LastAdministrator if the server
    would lose its last administrator; with `must_change` AssignmentExists and AssignmentMissing.
    """
    ref, context = granted.ref, granted.context
    _check(writes, deletes, ref.type)
    for entry in (*writes, *deletes):
        if not may_grant(entry.privilege, granted.privileges, on=ref.type):
            raise Forbidden(f"Not allowed: you may not grant or revoke {entry.privilege} on this {ref.type.value}")
    project_id = granted.chain[1].id if len(granted.chain) > 1 else None
    with changing():
        _hold_all(granted.chain, writes, deletes)
        if must_change:
            there = {GrantEntry(*pair) for pair in ledger.on(ref)}
            ensure_changes(there, writes=writes, deletes=deletes, of=f"{ref.type.value} {ref.public_id}")
        if writes:
            rows = Grant.objects.filter(object_type=ref.type.value, object_id=ref.id)
            within = f"{ref.type.value}:{ref.id}"
            quotas.ensure_room("grants_on_object", rows, within=within, adding=len(writes))
        added = ledger.give(granted.chain, [_pair(entry) for entry in writes], granted_by=context.caller.id)
        if ref.type is ObjectType.SERVER:
            for principal in _losing_all(ref, deletes):
                user_removal.ensure_other_administrator(principal)
        removed = ledger.remove(ref, [_pair(entry) for entry in deletes])
        if not added and not removed:
            transaction.set_rollback(True)
            return
        data = {"writes": _plain(writes), "deletes": _plain(deletes)}
        object_id = project_id if ref.type is ObjectType.PROJECT else ref.public_id
        record(Change("updateGrants", ref.type.value, str(object_id), project_id, data), context)


def ensure_changes(there: Collection[object], *, writes: Sequence[object], deletes: Sequence[object], of: str) -> None:
    """Raises AssignmentExists for a write that is there already, AssignmentMissing for a delete that is not."""
    if present := [each for each in writes if each in there]:
        raise AssignmentExists(f"{_shown(present[0])} is assigned on the {of} already")
    if absent := [each for each in deletes if each not in there]:
        raise AssignmentMissing(f"{_shown(absent[0])} is not assigned on the {of}")


def _shown(entry: object) -> str:
    return f"{entry.privilege} of {entry.principal}" if isinstance(entry, GrantEntry) else f"assignee {entry}"


def managed_access(granted: Granted[object]) -> tuple[bool, bool]:
    """Whether managed access is set on the object itself, and whether it is set on an object above it."""
    return ledger.is_managed(granted.chain)


def set_managed_access(granted: Granted[object], *, managed: bool) -> None:
    """With managed access, owners of objects in the warehouse or namespace may no longer grant privileges on them.

    Only principals with `manage_grants` may. Idempotent.
    """
    context, project_id = granted.context, granted.chain[1].id
    with changing():
        _hold_all(granted.chain)
        if ledger.set_managed(granted.chain, managed=managed, set_by=context.caller.id):
            change = Change(
                "setManagedAccess", granted.ref.type.value, granted.ref.id, project_id, {"managed": managed}
            )
            record(change, context)


def _check(writes: Sequence[GrantEntry], deletes: Sequence[GrantEntry], kind: ObjectType) -> None:
    if len(writes) + len(deletes) > MAX_ENTRIES:
        raise BadRequest(f"{len(writes) + len(deletes)} grants in one request: at most {MAX_ENTRIES} are allowed")
    known = GRANTABLE[kind]
    for entry in (*writes, *deletes):
        if entry.privilege not in known:
            raise BadRequest(
                f"{entry.privilege} cannot be granted on a {kind.value}: one of {', '.join(sorted(known))}"
            )
    if both := set(writes) & set(deletes):
        raise BadRequest(f"{next(iter(both)).privilege} of {next(iter(both)).principal} is both granted and revoked")


def _hold_all(
    chain: Sequence[ObjectRef], writes: Sequence[GrantEntry] = (), deletes: Sequence[GrantEntry] = ()
) -> None:
    """Lock all rows that a change of the object's grants depends on, in the global order (see `db_transaction`)."""
    kind, project_id = chain[-1].type, chain[1].id if len(chain) > 1 else None
    if kind is not ObjectType.PROJECT:
        _hold(chain)
    _hold_principals([entry.principal for entry in writes], project_id)
    user_removal.hold(entry.principal for entry in deletes)
    projects.hold(project_id)
    if kind is not ObjectType.SERVER:
        # checked again: moves also lock the project's row, so only from here on the object stays where it is, and the
        _hold(chain)
        # grant is stored with the right ancestors


def _hold(chain: Sequence[ObjectRef]) -> None:
    """Lock the object against being dropped until the transaction ends.

    A grant on a dropped object would keep the objects above it visible for ever. Raises NotFound if it was dropped,
    Conflict if it was moved away from where `chain` says.
    """
    ref = chain[-1]
    if ref.type is ObjectType.SERVER:
        Server.objects.select_for_update().get(singleton=True)  # see `user_removal.ensure_other_administrator`
        return
    rows = fetch(_PLACES[ref.type], [ref.id])
    if not rows:
        raise NotFound(f"{word_of(ref.type.value).capitalize()} does not exist: {ref.public_id}")
    namespaces = [each.id for each in chain[:-1] if each.type is ObjectType.NAMESPACE]
    if [str(identifier) for identifier in rows[0][0]] != namespaces:
        raise Conflict(f"The {ref.type.value} was moved while its grants were changed: try again")


def _hold_principals(principals: Collection[PrincipalId], project_id: str | None) -> None:
    """Lock the principals against deletion until the transaction ends."""
    roles = {each.removeprefix(ROLE_PREFIX) for each in principals if each.startswith(ROLE_PREFIX)}
    wanted = {each for each in principals if not each.startswith(ROLE_PREFIX)}
    if roles and project_id is None:
        raise BadRequest(
            "Privileges on the server can only be granted to users: the members of a role are decided in its project"
        )
    held = fetch(role.HELD_OF_PROJECT, [project_id, list(roles)])
    for missing in sorted(roles - {str(identifier) for (identifier,) in held}):
        raise NoSuchRole(f"Role does not exist: {missing}")
    user_removal.ensure_present(wanted)


def _losing_all(ref: ObjectRef, deletes: Sequence[GrantEntry]) -> set[PrincipalId]:
    """The principals who have no grant on the object once `deletes` are removed."""
    held = set(ledger.on(ref))
    return {principal for principal, _ in held} - {principal for principal, _ in held - {_pair(e) for e in deletes}}


def _pair(entry: GrantEntry) -> tuple[PrincipalId, Privilege]:
    return entry.principal, entry.privilege


def _plain(entries: Sequence[GrantEntry]) -> list[dict[str, str]]:
    return [{"privilege": entry.privilege.value, "principal": entry.principal} for entry in entries]
