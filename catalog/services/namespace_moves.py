"""Moves a namespace, with everything below it, to another name or parent in its warehouse.

Ids, direct grants and locations stay; inherited rights follow the new parent at once.
"""

from collections.abc import Sequence

from django.db import IntegrityError

from catalog.access import namespace_chain
from catalog.models import Namespace
from catalog.models.namespace import KEY_SEPARATOR, MAX_PATH_BYTES, path_key
from catalog.services.contracts import moves as contract_moves
from catalog.services.namespaces import check_path, lock_tree
from catalog.services.protection import ensure_unprotected
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.db_transaction import changing
from lakewarden.errors import AlreadyExists, Conflict, InvalidArgument, NoSuchNamespace
from lakewarden.events.change_recording import Change, record
from lakewarden.names import MAX_DEPTH, match_key
from lakewarden.prepared_statements import fetch
from tenants.access import warehouse_chain
from tenants.models import Warehouse

NewParent = Granted[Namespace] | Granted[Warehouse]


def check_destination(namespace: Namespace, destination: Sequence[str]) -> None:
    """Raises InvalidArgument for a path that is not valid, or that is inside the namespace itself."""
    check_path(destination)
    if path_key(destination).startswith(namespace.path_key + KEY_SEPARATOR):
        raise InvalidArgument(
            f"Cannot move namespace {namespace} to {'.'.join(destination)}: it cannot be moved into itself"
        )


def move(
    granted: Granted[Namespace], destination: Sequence[str], parent: NewParent, *, force: bool = False
) -> Namespace:
    """Give the namespace the path `destination`, whose parent (or warehouse, for a top one) is granted.

    Moving it to its current path changes nothing. Raises InvalidArgument for an invalid destination, for one that makes
    a path below too deep or too long, and in a layout whose folders follow the names; AlreadyExists when it is taken,
    NoSuchNamespace when the namespace or the new parent was dropped meanwhile, Conflict when the namespace was moved
    meanwhile, Protected without `force`.
    """
    known, context = granted.target, granted.context
    _check_layout(known, destination)
    shown = ".".join(destination)
    try:
        with changing():
            lock_tree(known.warehouse_id, exclusive=True)
            namespace = _locked(known)
            check_destination(namespace, destination)
            above = _parent_now(parent, destination)
            if (above.id if above else None, destination[-1]) == (namespace.parent_id, namespace.path[-1]):
                return namespace
            if not force:
                ensure_unprotected(namespace)
            if Namespace.objects.filter(**_at(namespace, destination)).exclude(id=namespace.id).exists():
                raise AlreadyExists(f"Cannot move {namespace} to {shown}. Namespace already exists")
            _check_room(namespace, destination)
            contract_moves.check_namespace(namespace, above, _path(destination, above), context)
            moved = _relocate(namespace, destination, above)
            *before, ref = namespace_chain(namespace)
            after = namespace_chain(above) if above else warehouse_chain(known.warehouse)
            ledger.reparent(ref, before=before, after=after)
            old, namespace.path = namespace.path, _path(destination, above)
            namespace.parent = above
            data = {"namespace": namespace.path, "before": old, "warehouse-id": str(known.warehouse_id), "moved": moved}
            record(Change("moveNamespace", "namespace", ref.id, known.warehouse.project_id, data), context)
    except IntegrityError as error:
        if "foreign key" in str(error):
            raise NoSuchNamespace(f"Namespace does not exist: {'.'.join(destination[:-1])}") from error
        raise AlreadyExists(f"Cannot move {known} to {shown}. Namespace already exists") from error
    return namespace


def _check_layout(namespace: Namespace, destination: Sequence[str]) -> None:
    if namespace.warehouse.profile.layout.FOLLOWS_NAMES and list(destination) != namespace.path:
        raise InvalidArgument(
            f"Cannot move {namespace}: the warehouse has the storage layout 'full-hierarchy', in which the folders of "
            "namespaces have their names, and files stay where they are"
        )


def _at(namespace: Namespace, path: Sequence[str]) -> dict[str, object]:
    return {"warehouse_id": namespace.warehouse_id, "path_key": path_key(path)}


def _locked(known: Namespace) -> Namespace:
    """The current row; its path must still be the one for which the caller was authorized."""
    found = Namespace.objects.select_for_update().filter(id=known.id).first()
    if found is None:
        raise NoSuchNamespace(f"Namespace does not exist: {known.id}")
    if found.lineage != known.lineage:
        raise Conflict(f"Namespace {known} was moved to {found} in the meantime: check its path and try again")
    found.warehouse = known.warehouse
    return found


def _parent_now(parent: NewParent, destination: Sequence[str]) -> Namespace | None:
    """The current row of the new parent; None for the top.

    Its path must still be the one for which the caller was authorized.
    """
    known = parent.target
    if isinstance(known, Warehouse):
        return None
    found = Namespace.objects.filter(id=known.id, path_key=path_key(destination[:-1]), lineage=known.lineage).first()
    if found is None:
        raise NoSuchNamespace(f"Namespace does not exist: {'.'.join(destination[:-1])}")
    found.warehouse = known.warehouse
    return found


def _check_room(namespace: Namespace, destination: Sequence[str]) -> None:
    """The deepest and the longest path below must still be allowed."""
    ((depth, size),) = fetch(_EXTENT, {"id": namespace.id})
    deepest = depth - len(namespace.path) + len(destination)
    if deepest > MAX_DEPTH:
        raise InvalidArgument(
            f"Cannot move {namespace}: the namespaces in it would have {deepest} levels, at most "
            f"{MAX_DEPTH} are allowed"
        )
    longest = size - len(namespace.path_key.encode()) + len(path_key(destination).encode())
    if longest > MAX_PATH_BYTES:
        raise InvalidArgument(
            f"Cannot move {namespace}: the names of a path below would be {longest} bytes together, at most "
            f"{MAX_PATH_BYTES} are allowed"
        )


def _relocate(namespace: Namespace, destination: Sequence[str], above: Namespace | None) -> int:
    """Change the rows of the namespace and of all below it; returns how many."""
    ((moved,),) = fetch(
        _RELOCATE,
        {
            "id": namespace.id,
            "parent": above.id if above else None,
            "name_key": match_key(destination[-1]),
            "path": _path(destination, above),
            "key": path_key(destination),
            "lineage": above.lineage if above else [],
            "depth": len(namespace.path),
            "length": len(namespace.path_key),
        },
    )
    return int(moved)


def _path(destination: Sequence[str], above: Namespace | None) -> list[str]:
    """The new path, with the parent's own spelling."""
    return [*(above.path if above else []), destination[-1]]


_BELOW = """
    with recursive below(id) as (
        select %(id)s::uuid
        union all
        select n.id from namespace n join below b on n.parent_id = b.id
    )
"""
_EXTENT = f"""{_BELOW}
    select max(cardinality(n.path)), max(octet_length(n.path_key)) from below b join namespace n on n.id = b.id
"""  # noqa: S608 text of our own
# the part of each path and lineage before the namespace itself is replaced
_RELOCATE = f"""{_BELOW}, moved as (
        update namespace n set
            parent_id = case when n.id = %(id)s then %(parent)s::uuid else n.parent_id end,
            name_key = case when n.id = %(id)s then %(name_key)s::text else n.name_key end,
            path = %(path)s::text[] || n.path[%(depth)s + 1:],
            path_key = %(key)s::text || substr(n.path_key, %(length)s + 1),
            lineage = %(lineage)s::uuid[] || n.lineage[%(depth)s:],
            version = n.version + 1,
            updated_at = now()
        from below b where n.id = b.id
        returning 1
    )
    select count(*) from moved
"""  # noqa: S608 text of our own
