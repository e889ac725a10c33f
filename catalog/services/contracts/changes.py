"""Sets, reads and removes data contracts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec
from django.utils import timezone

from catalog.models import DataContract, Namespace, Tabular, namespace, tabular
from catalog.services.contracts import effective
from catalog.services.contracts.combined import Level, combine
from catalog.services.contracts.documents import Contract
from catalog.tabular_types import type_of
from lakewarden import config
from lakewarden.authz.interface import Granted
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest, Conflict, LakewardenError, NoSuchNamespace, NoSuchWarehouse
from lakewarden.events.change_recording import Change, record
from lakewarden.prepared_statements import execute, fetch
from tenants.models import Warehouse
from tenants.services import projects

Governed = Granted[Warehouse] | Granted[Namespace] | Granted[Tabular]


@dataclass(frozen=True, slots=True)
class SetContract:
    contract: Contract
    version: int
    set_by: str
    set_at: datetime


def find(granted: Governed) -> SetContract | None:
    """The object's own contract, if it has one."""
    found = DataContract.objects.filter(object=granted.target.id).first()
    return None if found is None else _shown(found)


def put(granted: Governed, contract: Contract) -> SetContract:
    """Set the object's contract; repeating it changes nothing.

    Raises BadRequest if its rules contradict each other, Conflict if they contradict those of a contract above or
    below, or there are too many contracts in the warehouse; the object's own 404 when it was deleted meanwhile.
    """
    if own := combine([(_level(granted.target), contract)]).contradictions:
        raise BadRequest(f"Invalid data contract: its rules contradict each other: {own[0]}")
    with changing():
        warehouse = _locked(granted)
        rows = list(DataContract.objects.filter(warehouse_id=warehouse.id))
        before = next((row for row in rows if row.object == granted.target.id), None)
        stored = contract.stored
        if before is not None and before.document == stored:
            return _shown(before)
        most = config.current().contracts.max_in_warehouse
        if before is None and len(rows) >= most:
            raise Conflict(
                f"The warehouse {warehouse} has {len(rows)} data contracts already, at most {most} are allowed "
                "(contracts.max_in_warehouse)"
            )
        _ensure_consistent(granted, contract, [row for row in rows if row.object != granted.target.id])
        row = before or DataContract(warehouse_id=warehouse.id, object=granted.target.id, **_place(granted.target))
        old = None if before is None else before.document
        row.document, row.version = stored, warehouse.contracts + 1
        row.set_by, row.set_at = granted.context.caller.id, timezone.now()
        row.save()
        _end(granted, warehouse, "setDataContract", {"contract": stored, "before": old})
    return _shown(row)


def remove(granted: Governed) -> None:
    """Remove the object's own contract. Nothing happens if it has none."""
    with changing():
        warehouse = _locked(granted)
        row = DataContract.objects.filter(object=granted.target.id).first()
        if row is None:
            return
        row.delete()
        _end(granted, warehouse, "removeDataContract", {"before": row.document})


def hand_over(replaced: Tabular, identifier: UUID) -> None:
    """Give the contract of a table, part of a transaction that removes it, to the one that replaces it there.

    Whoever registers over a table must not thereby remove its contract.
    """
    execute("set constraints data_contract_tabular_fk deferred", [])  # the new row comes when the old one is gone
    DataContract.objects.filter(tabular_id=replaced.id).update(tabular_id=identifier, object=identifier)


def _shown(row: DataContract) -> SetContract:
    return SetContract(msgspec.convert(row.document, Contract), row.version, row.set_by, row.set_at)


def _end(granted: Governed, warehouse: Warehouse, event: str, data: dict[str, object]) -> None:
    """The version makes every replica look for contracts again; the epoch ends what waits to be committed in groups."""
    warehouse.contracts += 1
    warehouse.save(update_fields=["contracts"])
    target = granted.target
    projects.bump_epoch(warehouse.project_id)
    named: dict[str, object] = {}
    if isinstance(target, Namespace):
        named = {"namespace": target.path}
    elif isinstance(target, Tabular):
        named = {"namespace": target.namespace.path, "name": target.name}
    plain = {"warehouse-id": str(warehouse.id), "contract-version": warehouse.contracts, **named, **data}
    record(Change(event, granted.ref.type.value, granted.ref.public_id, warehouse.project_id, plain), granted.context)


def _ensure_consistent(granted: Governed, contract: Contract, others: Sequence[DataContract]) -> None:
    """Raises Conflict if the contract contradicts one above it or below it, also of what was dropped."""
    around = _levels_of([row for row in others if row.namespace_id or row.tabular_id])
    own = _levels(granted.target)
    documents = {row.object: msgspec.convert(row.document, Contract) for row in others}
    documents[granted.target.id] = contract
    lines = [own, *(line for line in around if granted.target.id in line)]
    for line in lines:
        found = combine([(level, documents[key]) for key, level in line.items() if key in documents])
        if found.contradictions:
            raise Conflict(f"The data contract contradicts another one: {found.contradictions[0]}")


def _levels_of(rows: Sequence[DataContract]) -> list[dict[UUID, Level]]:
    """The levels around each object that has a contract, by ids."""
    namespaces = Namespace.everything.filter(id__in=[row.namespace_id for row in rows if row.namespace_id]).placed()
    ids = [row.tabular_id for row in rows if row.tabular_id]
    tabulars = Tabular.everything.filter(id__in=ids).placed()
    return [*(_levels(each) for each in namespaces), *(_levels(each) for each in tabulars)]


def _levels(target: Warehouse | Namespace | Tabular) -> dict[UUID, Level]:
    if isinstance(target, Warehouse):
        return {target.id: effective.of_warehouse(target)}
    if isinstance(target, Namespace):
        return effective.levels(target)
    return effective.levels(target.namespace, target)


def _level(target: Warehouse | Namespace | Tabular) -> Level:
    return _levels(target)[target.id]


def _place(target: Warehouse | Namespace | Tabular) -> dict[str, UUID]:
    if isinstance(target, Namespace):
        return {"namespace_id": target.id}
    return {"tabular_id": target.id} if isinstance(target, Tabular) else {}


def _locked(granted: Governed) -> Warehouse:
    """The row of the warehouse, locked, after which the object's own is there until the transaction ends."""
    target = granted.target
    identifier = target.id if isinstance(target, Warehouse) else target.warehouse_id
    warehouse = Warehouse.objects.select_for_update().filter(id=identifier).first()
    if warehouse is None:
        raise NoSuchWarehouse(f"Warehouse does not exist: {identifier}")
    if isinstance(target, Warehouse):
        return warehouse
    if not fetch(namespace.HELD if isinstance(target, Namespace) else tabular.HELD, [str(target.id)]):
        raise _gone(target)
    return warehouse


def _gone(target: Namespace | Tabular) -> LakewardenError:
    if isinstance(target, Tabular):
        return type_of(target).not_there(target)
    return NoSuchNamespace(f"Namespace does not exist: {target}")
