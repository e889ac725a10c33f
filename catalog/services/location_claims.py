"""The one rule of places: a location belongs to one object for its whole life (ADR 0016).

Whatever is to become the location of a table, a view or a namespace, by whatever route, is a `Claim`: looked at before
anything is written (`check`), and taken in the transaction of the change (`take`).
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
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
    """`location` (in its normal form) shall be that of an object in the namespace whose `lineage` is given.

    `by` is the caller, `uuid` that of the metadata, `existing` the object that lies elsewhere now (at `before`) or is
    replaced. A generated place is directly in the namespace's own `folder`, and nobody can know it before. One that
    `brings_files` may take what was released: as a new object of its own namespace, or from one (None: from the
    warehouse itself) in which the caller `may_take_from`.
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
    """Namespaces whose released places and folders may be taken."""
    _handed_on: set[UUID | None] = field(default_factory=set, init=False)
    """Those of `_allowed` whose released places the caller may hand on to whomever."""
    _empty: set[str] = field(default_factory=set, init=False)
    """Released places in which no file is left."""
    former_owners: frozenset[PrincipalId] | None = field(default=None, init=False)
    """Once it is taken: who owns what came back, as the caller may not decide that; None: the caller."""

    def check(self) -> None:
        """Outside of a transaction, before anything is written: what takes time is found out here.

        Raises AlreadyExists for a place that is another's, InvalidArgument for one that is not empty, Unavailable
        while files there are being removed, or when the storage cannot say.
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
        """In the transaction of the change: nobody else takes the place, or one around or in it, meanwhile.

        What was released there is `identifier`'s from now on. Raises as `check`, and CommitFailed when the staged
        creation has lost its place meanwhile.
        """
        if self.folder is not None:
            return  # nobody else can know it, and the folder is free as long as the namespace is there
        self.hold()
        waiting_purges.withdraw(self.location, reason=_TAKEN)
        found = self._found()
        self._judge(found, is_waiting_blocked=True)
        if self._is_staged and not any(each.owner == self.uuid and self._is_mine(each) for each in found):
            raise CommitFailed(f"The staged creation has lost its location {self.location}: stage it again")
        self._take_over(found, identifier)

    def hold(self) -> None:
        """Keep others from taking chosen places in the warehouse until the transaction ends.

        A staged one is reserved, meets nobody, and shares the lock.
        """
        key = zlib.crc32(self.warehouse.id.bytes)
        fetch(_SHARED if self.is_shared else _EXCLUSIVE, [_LOCK, key - (1 << 31)])

    @property
    def is_shared(self) -> bool:
        return self._is_staged

    @property
    def namespace_id(self) -> UUID:
        return self.lineage[-1]

    def _check_folder(self, folder: str) -> None:
        """Look once whether the folder of the namespace lies in anybody's place; raises as `take`.

        Once it is free it stays free: as long as the namespace is there, no claim around its folder is granted.
        """
        if self.namespace_id not in _FREE_FOLDERS:
            self._judge(self._found(), is_waiting_blocked=True)
            keep_free_folder(self.namespace_id, folder)

    def _found(self) -> list[OccupiedLocation]:
        return occupied_locations.overlapping(self.warehouse.id, self.location, but=self.existing)

    def _ensure_empty(self, found: Sequence[OccupiedLocation]) -> None:
        """Engines that replace a table write into its new place first: who may clear what is there may do that."""
        since = max((each.at for each in found if each.kind is Kind.RELEASED and each.at), default=None)
        is_new = since is None or locations.is_empty(self.warehouse, self.location, since=since)
        if self.before is None or not is_new or not self.may_take_from(self._folder(found)):
            locations.ensure_empty(self.warehouse, self.location)

    def _is_mine(self, found: OccupiedLocation) -> bool:
        """A staged creation of the caller in this namespace, at this very place."""
        is_here = (found.location, found.namespace) == (self.location, self.namespace_id)
        return found.kind is Kind.STAGED and is_here and found.by == self.by

    def _is_its_own(self, found: Iterable[OccupiedLocation]) -> bool:
        """A place inside of one that the object has, or had before: what lies there is its own."""
        if self.before is None:
            return False
        owned = [self.before, *(each.location for each in found if self._is_earlier(each))]
        return any(is_at_or_in(self.location, each) for each in owned)

    def _is_earlier(self, found: OccupiedLocation) -> bool:
        return found.kind is Kind.EARLIER and found.owner == self.existing

    def _ask(self, found: Sequence[OccupiedLocation]) -> None:
        """Find out which released places are empty, and from which namespaces the caller may take."""
        for each in found:
            if each.kind is Kind.RELEASED:
                may_take = self.brings_files and self._may_take(each.namespace)
                # of one inside the claimed place it is seen with the whole
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

    def _is_going(self, each: OccupiedLocation, *, is_waiting_blocked: bool) -> bool:
        """Its files are removed: one that still waits can be taken back, at this very place."""
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
        """The caller may have back what was released, as the object that it was: all of its places or none."""
        return released.owner in self._returning(found)

    def _returning(self, found: Sequence[OccupiedLocation]) -> list[UUID]:
        here = (each for each in found if each.kind is Kind.RELEASED and each.location == self.location)
        return [each.owner for each in here if self.brings_files and each.owner and self._may_have(each)]

    def _may_have(self, released: OccupiedLocation) -> bool:
        return released.owner == self.existing or released.namespace in self._allowed

    def _may_lie_in(self, found: Sequence[OccupiedLocation]) -> bool:
        """The innermost namespace's folder around the place is that of its own namespace, or of one around that."""
        folder = self._folder(found)
        is_allowed = folder is None or folder in self.lineage or folder in self._allowed
        return is_allowed or bool(self._returning(found)) or self._is_its_own(found)

    def _folder(self, found: Sequence[OccupiedLocation]) -> UUID | None:
        """The namespace whose folder is the innermost around the place; its own one of those that share a folder."""
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
        if over or returning:
            occupied_locations.forget(self.warehouse.id, [*over, self.location])


@dataclass(slots=True, kw_only=True)
class FileClaim(Claim):
    """A metadata file that is to be registered, before it is read: only its content says which location around it.

    Refuses a file around which the caller could claim none: its content, and whether it exists, is not theirs to know.
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
    """A folder chosen for the objects of a new namespace; `lineage` is that of what it lies in.

    It is not purged itself: files of anybody may lie there, but no other object's place, nor may it lie in one.
    """

    def check(self) -> None:
        self._judge(self._found(), is_waiting_blocked=False)

    def take(self, identifier: UUID) -> None:  # noqa: ARG002 the row itself says where it lies
        self.hold()
        self._judge(self._found(), is_waiting_blocked=True)

    def _found(self) -> list[OccupiedLocation]:
        """What was released below it, or is being removed there, is not touched by it."""
        gone = {Kind.RELEASED, Kind.PURGE, Kind.WAITING}
        found = Claim._found(self)  # noqa: SLF001 a class with slots cannot say super()
        return [each for each in found if each.kind not in gone or not is_in(each.location, self.location)]

    def _is_mine(self, found: OccupiedLocation) -> bool:  # noqa: ARG002
        return False


def may_modify(context: RequestContext, warehouse: Warehouse, namespace_id: UUID | None) -> bool:
    """Whether the caller may drop what lies in the namespace; in the whole warehouse when there is no such one."""
    return Privilege.MODIFY in _held(context, warehouse, namespace_id)


def may_hand_on(context: RequestContext, warehouse: Warehouse, namespace_id: UUID | None) -> bool:
    """Whether the caller may also grant rights on the files there: registering them elsewhere has that effect."""
    return {Privilege.MODIFY, Privilege.MANAGE_GRANTS} <= _held(context, warehouse, namespace_id)


def _held(context: RequestContext, warehouse: Warehouse, namespace_id: UUID | None) -> frozenset[Privilege]:
    rows = Namespace.everything.filter(warehouse=warehouse)
    found = rows.filter(id=namespace_id).first() if namespace_id else None
    if found is not None:
        found.warehouse = warehouse
    chain = namespace_chain(found) if found else warehouse_chain(warehouse)
    return access.privileges_elsewhere(context, chain)


def in_namespace(namespace: Namespace, location: str, *, context: RequestContext, generated: bool = False) -> Claim:
    """Of a new object in the namespace."""
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
    """Of an object in the namespace whose files are there already; it takes the place of `existing`."""
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
    """The folder of a namespace, if this process has seen that generated places in it are nobody else's."""
    return _FREE_FOLDERS.get(namespace_id)


def keep_free_folder(namespace_id: UUID, folder: str) -> None:
    """Remember what `free_folder` says: the folder of a namespace was looked at, or has just been made up for it."""
    if len(_FREE_FOLDERS) >= _MOST_FOLDERS:
        _FREE_FOLDERS.clear()
    _FREE_FOLDERS[namespace_id] = folder


_FREE_FOLDERS: dict[UUID, str] = {}
_MOST_FOLDERS = 100_000
_LOCK = 0x10C8
_TAKEN = "Withdrawn: a table was created or registered there"
_EXCLUSIVE = "select pg_advisory_xact_lock(%s::int, %s::int)"
_SHARED = "select pg_advisory_xact_lock_shared(%s::int, %s::int)"
