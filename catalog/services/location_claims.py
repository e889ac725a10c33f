"""Enforces that a location belongs to one object for its whole life (ADR 0016).

Every new location of a table, view or namespace, by whatever route, is a `Claim`: it is checked before anything is
written (`check`), and taken in the transaction of the change (`take`).
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from functools import partial
from uuid import UUID

from catalog.access import namespace_chain
from catalog.models import Namespace, occupied_locations
from catalog.models.occupied_locations import Kind, OccupiedLocation
from catalog.services import locations
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId, RequestContext
from lakewarden.errors import AlreadyExists, CommitFailed, Unavailable
from lakewarden.prepared_statements import fetch
from lakewarden.storage.places import is_at_or_in, is_in
from lakewarden.tasks import waiting_purges
from tenants import access
from tenants.access import warehouse_chain
from tenants.models import Warehouse


@dataclass(slots=True, kw_only=True)
class Claim:
    """`location` (in its normal form) is to become that of an object in the namespace whose `lineage` is given.

    `by` is the caller, `uuid` that of the metadata, `existing` the object that moves (from `before`) or is replaced. A
    generated location is directly in the namespace's own `folder`, and nobody can know it in advance. A claim that
    `brings_files` may take released locations: those of the same namespace, or of another namespace (None: of the
    warehouse itself) for which `may_take_from` allows it.
    """

    warehouse: Warehouse
    location: str
    lineage: Sequence[UUID]
    by: PrincipalId
    uuid: UUID | None = None
    existing: UUID | None = None
    before: str | None = None
    folder: str | None = None
    brings_files: bool = False
    may_take_from: Callable[[UUID | None], bool] = lambda _: False
    _is_staged: bool = field(default=False, init=False)
    _allowed: set[UUID | None] = field(default_factory=set, init=False)
    """Namespaces whose released locations and folders may be taken."""
    _handed_on: set[UUID | None] = field(default_factory=set, init=False)
    """Those of `_allowed` on whose released locations the caller may also grant rights to others."""
    _empty: set[str] = field(default_factory=set, init=False)
    """Released locations that contain no file any more."""
    former_owners: frozenset[PrincipalId] | None = field(default=None, init=False)
    """After `take`: the owners of a registered object if the caller may not become its owner; None: the caller."""

    def check(self) -> None:
        """Called outside of a transaction, before anything is written, because looking at the storage takes time.

        Raises AlreadyExists for a location that belongs to another object, InvalidArgument for one that is not empty,
        Unavailable while files there are being removed, or when the storage does not answer.
        """
        if self.folder is not None:
            self._check_folder(self.folder)
            return
        found = self._found()
        self._is_staged = any(each.owner == self.uuid and self._is_mine(each) for each in found)
        self._ask(found)
        self._judge(found, is_waiting_blocked=False)
        if not (self.brings_files or self._is_staged or self._is_its_own(found)):
            self._ensure_empty(found)

    def take(self, identifier: UUID) -> None:
        """Called in the transaction of the change: until its end nobody else can take an overlapping location.

        Released locations there belong to `identifier` from now on. Raises as `check`, and CommitFailed when the staged
        creation has lost its reservation meanwhile.
        """
        if self.folder is not None:
            return  # nobody else can know it, and the folder is free as long as the namespace exists
        self.hold()
        waiting_purges.withdraw(self.location, reason=_TAKEN)
        found = self._found()
        self._judge(found, is_waiting_blocked=True)
        if self._is_staged and not any(each.owner == self.uuid and self._is_mine(each) for each in found):
            raise CommitFailed(f"The staged creation has lost its location {self.location}: stage it again")
        self._take_over(found, identifier)

    def hold(self) -> None:
        """Prevent others from taking chosen locations in the warehouse until the transaction ends.

        A staged one is already reserved, cannot conflict with others, and shares the lock.
        """
        hold_locations(self.warehouse, is_shared=self.is_shared)

    @property
    def is_shared(self) -> bool:
        return self._is_staged

    @property
    def namespace_id(self) -> UUID:
        return self.lineage[-1]

    def _check_folder(self, folder: str) -> None:
        """Check once whether the folder of the namespace overlaps the location of an object; raises as `take`.

        If it is free, it stays free: as long as the namespace exists, no claim around its folder is granted.
        """
        if self.namespace_id not in _FREE_FOLDERS:
            self._judge(self._found(), is_waiting_blocked=True)
            keep_free_folder(self.namespace_id, folder)

    def _found(self) -> list[OccupiedLocation]:
        base = self.warehouse.location
        return occupied_locations.overlapping(self.warehouse.id, self.location, base=base, but=self.existing)

    def _ensure_empty(self, found: Sequence[OccupiedLocation]) -> None:
        """Raises InvalidArgument when files are in the way.

        Engines that replace a table write into its new location first, which callers may do who may drop what is around
        it.
        """
        since = max((each.at for each in found if each.kind is Kind.RELEASED and each.at), default=None)
        is_new = since is None or locations.is_empty(self.warehouse, self.location, since=since)
        if self.before is None or not is_new or not self.may_take_from(self._folder(found)):
            locations.ensure_empty(self.warehouse, self.location)

    def _is_mine(self, found: OccupiedLocation) -> bool:
        """A staged creation of the caller in this namespace, at exactly this location."""
        is_here = (found.location, found.namespace) == (self.location, self.namespace_id)
        return found.kind is Kind.STAGED and is_here and found.by == self.by

    def _is_its_own(self, found: Iterable[OccupiedLocation]) -> bool:
        """A location inside of one that the object has, or had before: files there belong to it."""
        if self.before is None:
            return False
        owned = [self.before, *(each.location for each in found if self._is_earlier(each))]
        return any(is_at_or_in(self.location, each) for each in owned)

    def _is_earlier(self, found: OccupiedLocation) -> bool:
        return found.kind is Kind.EARLIER and found.owner == self.existing

    def _ask(self, found: Sequence[OccupiedLocation]) -> None:
        """Find out which released locations are empty, and from which namespaces the caller may take them."""
        for each in found:
            if each.kind is Kind.RELEASED:
                may_take = self.brings_files and self._may_take(each.namespace)
                # one inside the claimed location is checked together with the whole
                is_inside = not self.brings_files and is_at_or_in(each.location, self.location)
                if is_inside or (not may_take and locations.is_empty(self.warehouse, each.location)):
                    self._empty.add(each.location)
            elif each.kind is Kind.NAMESPACE and self.brings_files:
                self._may_take(each.namespace)

    def _may_take(self, namespace: UUID | None) -> bool:
        if self.may_take_from(namespace):
            self._allowed.add(namespace)
            self._handed_on.add(namespace)
        elif namespace == self.namespace_id and self.existing is None:
            self._allowed.add(namespace)
        return namespace in self._allowed

    def _judge(self, found: Sequence[OccupiedLocation], *, is_waiting_blocked: bool) -> None:
        self._ensure_unreachable(found)
        going = {each.location for each in found if self._is_going(each, is_waiting_blocked=is_waiting_blocked)}
        staying = [each for each in found if each.kind is not Kind.RELEASED or each.location not in going]
        if any(self._is_anothers(each, found) for each in staying) or not self._may_lie_in(found):
            raise AlreadyExists(
                f"The location {self.location} overlaps the location of another table, view or "
                "namespace: each needs a location of "
                "its own"
            )
        if going:
            raise Unavailable(
                f"The files of a dropped table are still being removed from {self.location}", retry_after_s=1
            )

    def _ensure_unreachable(self, found: Sequence[OccupiedLocation]) -> None:
        """Raises AlreadyExists while engines can reach the location with credentials for another object.

        An object's own may come back: those who have credentials for it received them for the same files.
        """
        own = {self.existing, *self._returning(found), *(each.owner for each in found if self._is_mine(each))}
        others = [each for each in found if each.kind is Kind.REACHABLE and each.owner not in own]
        if others and not self._is_its_own(found):
            until = max(each.at for each in others if each.at).astimezone(UTC).isoformat(timespec="seconds")
            raise AlreadyExists(
                f"The location {self.location} overlaps that of a table that was dropped, or not completed. Engines "
                f"may still have credentials for its files until {until}: choose another location, or wait until then"
            )

    def _is_going(self, each: OccupiedLocation, *, is_waiting_blocked: bool) -> bool:
        """Its files are being removed; a removal that still waits can be withdrawn, at exactly this location."""
        if each.kind is Kind.WAITING:
            return is_waiting_blocked or each.location != self.location
        return each.kind is Kind.PURGE

    def _is_anothers(self, each: OccupiedLocation, found: Sequence[OccupiedLocation]) -> bool:
        match each.kind:
            case Kind.OBJECT:
                return True
            case Kind.EARLIER:
                return not self._is_earlier(each)
            case Kind.STAGED:
                return not self._is_mine(each)
            case Kind.RELEASED:
                return each.location not in self._empty and not self._comes_back(each, found)
            case Kind.NAMESPACE:
                return is_at_or_in(each.location, self.location)
        return False

    def _comes_back(self, released: OccupiedLocation, found: Sequence[OccupiedLocation]) -> bool:
        """The caller may register a released object again, with all of its locations or none."""
        return released.owner in self._returning(found)

    def _returning(self, found: Sequence[OccupiedLocation]) -> list[UUID]:
        here = (each for each in found if each.kind is Kind.RELEASED and each.location == self.location)
        return [each.owner for each in here if self.brings_files and each.owner and self._may_have(each)]

    def _may_have(self, released: OccupiedLocation) -> bool:
        return released.owner == self.existing or released.namespace in self._allowed

    def _may_lie_in(self, found: Sequence[OccupiedLocation]) -> bool:
        """The innermost namespace folder around the location is that of its own namespace, or of one above."""
        folder = self._folder(found)
        is_allowed = folder is None or folder in self.lineage or folder in self._allowed
        return is_allowed or bool(self._returning(found)) or self._is_its_own(found)

    def _folder(self, found: Sequence[OccupiedLocation]) -> UUID | None:
        """The namespace with the innermost folder around the location; its own one if several share the folder."""
        around = [each for each in found if each.kind is Kind.NAMESPACE and each.location != self.location]
        around.sort(key=lambda each: (len(each.location), each.namespace in self.lineage))
        return around[-1].namespace if around else None

    def _take_over(self, found: Sequence[OccupiedLocation], identifier: UUID) -> None:
        if returning := self._returning(found):
            back = [each for each in found if each.owner in returning and each.namespace not in self._handed_on]
            if back:
                self.former_owners = frozenset(PrincipalId(owner) for each in back for owner in each.owners)
            for location in occupied_locations.of_owners(self.warehouse.id, returning):
                waiting_purges.withdraw(location, reason=_TAKEN)
            occupied_locations.hand_over(self.warehouse.id, returning, to=identifier, but=self.location)
        kept = {Kind.STAGED, Kind.RELEASED}
        over = [each.location for each in found if each.kind in kept and each.owner not in returning]
        if reachable := [each for each in found if each.kind is Kind.REACHABLE]:  # those of others were refused
            owners = [each.owner for each in reachable if each.owner]
            occupied_locations.forget_reachable(owners, [each.location for each in reachable])
        if over or returning:
            occupied_locations.forget(self.warehouse.id, [*over, self.location])


@dataclass(slots=True, kw_only=True)
class FileClaim(Claim):
    """A metadata file that is to be registered, before it is read: only its content says which location it belongs to.

    Refuses a file if the caller could claim no location around it, because they may not know its content, or whether it
    exists.
    """

    def check(self) -> None:
        found = self._found()
        self._ask(found)
        self._judge(found, is_waiting_blocked=False)

    def _is_going(self, each: OccupiedLocation, *, is_waiting_blocked: bool) -> bool:  # noqa: ARG002
        return each.kind is Kind.PURGE

    def _is_mine(self, found: OccupiedLocation) -> bool:
        return found.kind is Kind.STAGED and (found.namespace, found.by) == (self.namespace_id, self.by)

    def _returning(self, found: Sequence[OccupiedLocation]) -> list[UUID]:
        released = (each for each in found if each.kind is Kind.RELEASED)
        return [each.owner for each in released if each.owner and each.namespace in self._allowed]


@dataclass(slots=True, kw_only=True)
class NamespaceClaim(Claim):
    """A folder chosen for the objects of a new namespace; `lineage` is that of its parent.

    It is never purged as a whole: it may contain any files, but it must not overlap the location of another object.
    """

    def check(self) -> None:
        self._judge(self._found(), is_waiting_blocked=False)

    def take(self, identifier: UUID) -> None:  # noqa: ARG002 the row itself says where it lies
        self.hold()
        self._judge(self._found(), is_waiting_blocked=True)

    def _found(self) -> list[OccupiedLocation]:
        """Released locations below it, and removals there, are not affected."""
        gone = {Kind.RELEASED, Kind.PURGE, Kind.WAITING, Kind.REACHABLE}
        found = Claim._found(self)  # noqa: SLF001 a class with slots cannot say super()
        return [each for each in found if each.kind not in gone or not is_in(each.location, self.location)]

    def _is_mine(self, found: OccupiedLocation) -> bool:  # noqa: ARG002
        return False


def may_modify(context: RequestContext, warehouse: Warehouse, namespace_id: UUID | None) -> bool:
    """Whether the caller may drop objects in the namespace; in the whole warehouse if the namespace is gone."""
    return Privilege.MODIFY in _held(context, warehouse, namespace_id)


def may_hand_on(context: RequestContext, warehouse: Warehouse, namespace_id: UUID | None) -> bool:
    """Whether the caller may also grant rights on files there: registering them elsewhere has that effect."""
    return {Privilege.MODIFY, Privilege.MANAGE_GRANTS} <= _held(context, warehouse, namespace_id)


def _held(context: RequestContext, warehouse: Warehouse, namespace_id: UUID | None) -> frozenset[Privilege]:
    rows = Namespace.everything.filter(warehouse=warehouse)
    found = rows.filter(id=namespace_id).first() if namespace_id else None
    if found is not None:
        found.warehouse = warehouse
    chain = namespace_chain(found) if found else warehouse_chain(warehouse)
    return access.privileges_elsewhere(context, chain)


def in_namespace(namespace: Namespace, location: str, *, context: RequestContext, generated: bool = False) -> Claim:
    """The claim of a new object in the namespace."""
    return Claim(
        warehouse=namespace.warehouse,
        location=location,
        lineage=namespace.lineage,
        by=context.caller.id,
        folder=namespace.properties["location"] if generated else None,
        may_take_from=partial(may_modify, context, namespace.warehouse),
    )


def of_files(
    namespace: Namespace, location: str, *, context: RequestContext, existing: UUID | None, shape: type[Claim] = Claim
) -> Claim:
    """The claim of an object in the namespace whose files exist already; it replaces `existing`."""
    return shape(
        warehouse=namespace.warehouse,
        location=location,
        lineage=namespace.lineage,
        by=context.caller.id,
        existing=existing,
        brings_files=True,
        may_take_from=partial(may_hand_on, context, namespace.warehouse),
    )


def free_folder(namespace_id: UUID) -> str | None:
    """The folder of a namespace, if this process knows that generated locations in it conflict with no other object."""
    return _FREE_FOLDERS.get(namespace_id)


def keep_free_folder(namespace_id: UUID, folder: str) -> None:
    """Remember for `free_folder` that the folder of a namespace was checked, or was generated for it."""
    if len(_FREE_FOLDERS) >= _MOST_FOLDERS:
        _FREE_FOLDERS.clear()
    _FREE_FOLDERS[namespace_id] = folder


def hold_locations(warehouse: Warehouse, *, is_shared: bool = False) -> None:
    """See `Claim.hold`."""
    key = zlib.crc32(warehouse.id.bytes)
    fetch(_SHARED if is_shared else _EXCLUSIVE, [_LOCK, key - (1 << 31)])


_FREE_FOLDERS: dict[UUID, str] = {}
_MOST_FOLDERS = 100_000
_LOCK = 0x10C8
_TAKEN = "Withdrawn: a table was created or registered there"
_EXCLUSIVE = "select pg_advisory_xact_lock(%s::int, %s::int)"
_SHARED = "select pg_advisory_xact_lock_shared(%s::int, %s::int)"
