"""What tables, views and generic tables have in common: their row and their name. See also `pointer` and `deletion`."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import IntegrityError
from django.utils import timezone

from catalog.access import may_see, namespace_chain, tabular_chain
from catalog.documents import pack
from catalog.models import Namespace, Tabular
from catalog.models.tabular import ListedTabular
from catalog.services import limits, location_claims, locations, metadata_files
from catalog.services.contracts import changes as contract_changes
from catalog.services.contracts import moves
from catalog.services.deletion.drop_tabular import remove
from catalog.services.location_claims import Claim, FileClaim
from catalog.services.namespaces import hold_place
from catalog.services.pointer import NewMetadata, Stored, gone, record_change
from catalog.services.tags import changes as tags
from catalog.tabular_types import TABULAR_TYPES, type_of, word_of
from lakewarden import quotas
from lakewarden.authz.actions import NamespaceAction, ObjectType
from lakewarden.authz.interface import Granted, ObjectRef
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId, Refused
from lakewarden.db_transaction import changing
from lakewarden.errors import AlreadyExists, Forbidden, InternalError, NoSuchNamespace, ValidationFailed
from lakewarden.ids import new_id
from lakewarden.names import check_name, match_key
from lakewarden.paging import Page
from lakewarden.storage.places import is_in
from tenants import access
from tenants.models import Warehouse
from tenants.services import user_removal

_ABOVE = {ObjectType.SERVER, ObjectType.PROJECT, ObjectType.WAREHOUSE}
_UUID_UNIQUE = "tabular_uuid_unique"
_GOVERNING = {Privilege.OWNERSHIP, Privilege.MANAGE_GRANTS, Privilege.MANAGE_TAGS}


class TableExists(AlreadyExists):
    """The name of a new table is taken by another table."""


def check_free(namespace: Namespace, name: str, kind: Tabular.Kind) -> None:
    """Raises AlreadyExists when the name is taken in the namespace, and InvalidArgument for an invalid name."""
    check_name(name, what=word_of(kind))
    found = Tabular.objects.kind_of(namespace.id, match_key(name))
    if found is not None:
        raise taken(namespace, name, found, asked=kind)
    ensure_room(namespace)


def has_room(namespace: Namespace) -> bool:
    """Use up one place of the quotas, if this process knows without counting that there is one."""
    return quotas.take_room("tables_in_namespace", within=str(namespace.id)) and quotas.take_room(
        "tables_in_warehouse", within=str(namespace.warehouse_id)
    )


def ensure_room(namespace: Namespace) -> None:
    """Raises QuotaExceeded when nothing further may be in the namespace, or in its warehouse."""
    if not quotas.take_room("tables_in_namespace", within=str(namespace.id)):
        rows = Tabular.objects.filter(namespace_id=namespace.id)
        quotas.ensure_room("tables_in_namespace", rows, within=str(namespace.id))
    if not quotas.take_room("tables_in_warehouse", within=str(namespace.warehouse_id)):
        rows = Tabular.objects.filter(warehouse_id=namespace.warehouse_id)
        quotas.ensure_room("tables_in_warehouse", rows, within=str(namespace.warehouse_id))


def taken(namespace: Namespace, name: str, found: str, *, asked: str) -> AlreadyExists:
    full, word = f"{namespace}.{name}", word_of(found).capitalize()
    if found == asked:
        kind = TableExists if asked == Tabular.Kind.TABLE else AlreadyExists
        return kind(f"{word} already exists: {full}")
    return AlreadyExists(f"{word} with same name already exists: {full}")


def check_uuid_free(
    namespace: Granted[Namespace], uuid: str, *, what: Tabular.Kind, replacing: Tabular | None = None
) -> None:
    """Raises AlreadyExists when another table or view of the warehouse has the uuid, also one that can be restored.

    It is named if the caller may see it.
    """
    target = namespace.target
    rows = Tabular.everything.placed().filter(warehouse_id=target.warehouse_id, uuid=uuid)
    found = (rows.exclude(id=replacing.id) if replacing else rows).first()
    if found is None:
        return
    named = f"the {word_of(found.kind)} {found}" if may_see(namespace.context, found) else "another table or view"
    dropped = "" if found.deleted_at is None else ", which was dropped and is not removed yet"
    raise AlreadyExists(
        f"The uuid {uuid} of the {what} belongs to {named} in this warehouse{dropped}: each needs a uuid of its own"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A table or view whose location was checked and whose first metadata file is written; it has no row yet."""

    namespace: Granted[Namespace]
    name: str
    kind: Tabular.Kind
    new: NewMetadata
    event: str
    claim: Claim
    replacing: Tabular | None = None

    @property
    def warehouse(self) -> Warehouse:
        return self.namespace.target.warehouse


def insert(creation: Creation) -> Stored:
    """`write` it, then `add` it."""
    ready = write(creation)
    with metadata_files.discarding(ready.warehouse, [ready.new.file]):
        return add(ready)


def write(creation: Creation) -> Creation:
    """Check the location, then write the first metadata file there."""
    limits.check(creation.new, None)
    creation.claim.check()
    new = creation.new
    file = metadata_files.write(creation.warehouse, new.location, new.encoded, version=0, properties=new.properties)
    return dataclasses.replace(creation, new=dataclasses.replace(new, file=file))


def add(creation: Creation) -> Stored:
    """Add row, document, owner, audit and event in one transaction, which also removes the row of `replacing`."""
    target, context, new = creation.namespace.target, creation.namespace.context, creation.new
    tabular = Tabular(
        id=new_id(),
        warehouse=target.warehouse,
        namespace=target,
        kind=creation.kind,
        name=creation.name,
        name_key=match_key(creation.name),
        uuid=UUID(new.uuid),
        location=new.location,
        metadata_location=new.file,
    )
    document = pack(new.file, new.encoded)
    try:
        with changing():
            # the owner's grant stores the ids of the objects that contain it
            hold_place(target, is_judged=True)
            if creation.replacing is not None:
                contract_changes.hand_over(creation.replacing, tabular.id)
                tags.hand_over(creation.replacing, tabular.id, with_columns=creation.replacing.uuid == tabular.uuid)
            if creation.replacing is not None and remove(creation.replacing)[0]:
                # the outcome of the key is the new table, which a repeated request is answered with
                once = dataclasses.replace(context, idempotency=None)
                payload = {"purge": False, "replaced-by": str(tabular.uuid)}
                record_change(f"drop{type_of(creation.replacing).event}", creation.replacing, once, **payload)
            creation.claim.take(tabular.id)
            if creation.claim.brings_files:  # checked again: a removal may have ended since the file was read
                metadata_files.ensure_there(target.warehouse, new.file)
            Tabular.objects.add(tabular, document)
            if creation.replacing is None:
                _give_owners(tabular, creation)
            else:  # replacing a table takes no rights from those who have rights on it
                ledger.pass_on(tabular_chain(creation.replacing)[-1], tabular_chain(tabular))
            record_change(creation.event, tabular, context)
    except IntegrityError as error:
        if "foreign key" in str(error):
            raise NoSuchNamespace(f"Namespace does not exist: {target}") from error
        if _UUID_UNIQUE in str(error) and Tabular.objects.kind_of(target.id, match_key(creation.name)) is None:
            check_uuid_free(creation.namespace, new.uuid, what=creation.kind, replacing=creation.replacing)
        raise taken(target, creation.name, creation.kind, asked=creation.kind) from error
    return Stored(tabular, document)


def _give_owners(tabular: Tabular, creation: Creation) -> None:
    """The owners: the creator, or for an object that returns to its namespace its former owners who still exist."""
    former = creation.claim.former_owners
    owners = None if former is None else user_removal.remaining(former)
    ledger.give_creator(tabular_chain(tabular), creation.namespace.context.caller, to=owners)


def register(
    namespace: Granted[Namespace],
    name: str,
    kind: Tabular.Kind,
    metadata_location: str,
    *,
    read: Callable[[bytes], NewMetadata],
    replacing: Tabular | None = None,
) -> Stored:
    """Register an existing metadata file as a table or view; `read` checks its content.

    Raises ValidationFailed for a file that is missing or not valid, InvalidArgument for one outside the warehouse,
    AlreadyExists for a taken name or location.
    """
    warehouse = namespace.target.warehouse
    check_name(name, what=word_of(kind))
    if replacing is None:
        check_free(namespace.target, name, kind)
    file = locations.inside(warehouse, metadata_location)
    claim_of = partial(
        location_claims.of_files,
        namespace.target,
        context=namespace.context,
        existing=replacing.id if replacing else None,
    )
    claim_of(file, shape=FileClaim).check()
    new = read(metadata_files.read(warehouse, file))
    limits.check(new, None)
    new = dataclasses.replace(new, location=locations.inside(warehouse, new.location), file=metadata_location)
    if not is_in(file, new.location):
        raise ValidationFailed(f"The metadata file {file} is not inside its own {kind}'s location {new.location}")
    claim = claim_of(new.location)
    claim.check()
    check_uuid_free(namespace, new.uuid, what=kind, replacing=replacing)
    return add(
        Creation(
            namespace=namespace,
            name=name,
            kind=kind,
            new=new,
            event=f"register{TABULAR_TYPES[kind].event}",
            claim=claim,
            replacing=replacing,
        )
    )


def rename(granted: Granted[Tabular], destination: Granted[Namespace], name: str) -> None:
    """Give it another name, in the same warehouse. Renaming to its own name changes nothing.

    Raises AlreadyExists when the name is taken, the kind's own 404 when the object was dropped meanwhile, and Forbidden
    when somebody could grant rights on it or set its tags in the new namespace who may not now.
    """
    tabular, target = granted.target, destination.target
    check_name(name, what=type_of(tabular).word)
    if target.warehouse_id != tabular.warehouse_id:
        raise InternalError("A rename between warehouses reached the catalog")
    if (target.id, name) == (tabular.namespace_id, tabular.name):
        return
    if target.id != tabular.namespace_id:
        _ensure_nobody_gains(granted, destination)
        ensure_room(target)
        moves.check_tabular(tabular, target, name, granted.context)
    found = Tabular.objects.filter(namespace=target, name_key=match_key(name)).exclude(id=tabular.id).first()
    if found is not None:
        raise _rename_refused(str(tabular), target, name, found=found.kind)
    before = str(tabular)
    try:
        with changing():
            hold_place(target, is_judged=target.id != tabular.namespace_id)
            # only if it is still where it was when the caller was authorized
            found_there = Tabular.objects.filter(id=tabular.id, namespace_id=tabular.namespace_id)
            changed = found_there.update(
                namespace=target, name=name, name_key=match_key(name), updated_at=timezone.now()
            )
            if not changed:
                raise gone(tabular)
            if target.id != tabular.namespace_id:  # rights inherited from the old parent end here
                hold_place(tabular.namespace)
                *_, ref = tabular_chain(tabular)
                ledger.reparent(ref, before=namespace_chain(tabular.namespace), after=namespace_chain(target))
            tabular.namespace, tabular.name = target, name
            record_change(f"rename{type_of(tabular).event}", tabular, granted.context, before=before)
    except IntegrityError as error:
        if "foreign key" in str(error):
            raise NoSuchNamespace(f"Namespace does not exist: {target}") from error
        raise _rename_refused(before, target, name, found=tabular.kind) from error


def _ensure_nobody_gains(granted: Granted[Tabular], destination: Granted[Namespace]) -> None:
    """Raises Forbidden when somebody could grant rights on the object, or set its tags, in its new namespace who cannot
    now.

    This checks more than the caller's own rights: they may act as a role, or move it to help somebody else. A caller
    who may grant these rights now may move it wherever they may create.
    """
    if Privilege.MANAGE_GRANTS in granted.privileges:
        return
    there = [*destination.chain, granted.ref]
    places = [ref for ref in there if ref.type not in _ABOVE]
    holders = {who for ref in places for who, privilege in ledger.on(ref) if privilege in _GOVERNING}
    here = list(granted.chain)
    if not any(_gains(who, here, there) for who in sorted(holders)):
        return
    kind, word = granted.target.kind, type_of(granted.target).word
    refused = Forbidden(
        f"Not allowed: in {destination.target} there are principals who could grant privileges on this "
        f"{word} or set its tags but cannot where it is now: "
        f"moving it there requires the privilege {Privilege.MANAGE_GRANTS} on the {word}"
    )
    granted.context.trail.refused = Refused("rename", kind, granted.ref.public_id, granted.chain[1].id, refused.message)
    raise refused


def _gains(principal: PrincipalId, here: list[ObjectRef], there: list[ObjectRef]) -> bool:
    """Who manages grants can have `manage_tags` at any time."""
    before = access.governing(principal, here)
    return Privilege.MANAGE_GRANTS not in before and not access.governing(principal, there) <= before


def _rename_refused(before: str, target: Namespace, name: str, *, found: str) -> AlreadyExists:
    return AlreadyExists(f"Cannot rename {before} to {target}.{name}. {word_of(found).capitalize()} already exists")


def listed(granted: Granted[Namespace], kind: Tabular.Kind, page: Page) -> tuple[list[ListedTabular], str | None]:
    """The tables or views of a namespace, ordered by name key, and the key behind which the next page starts."""
    shown_to = access.shown_to(granted, NamespaceAction.LIST_EVERYTHING, granted.target.warehouse.project)
    found = Tabular.objects.listed(granted.target.id, kind, after=page.after or "", limit=page.limit, shown_to=shown_to)
    return page.cut(found)
