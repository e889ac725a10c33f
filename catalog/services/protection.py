"""Protection of namespaces and what they contain from deletion: set by the management API, checked by every drop.

Stored in the row's `protection` as {"by", "at", "reason"}. Names, data and metadata of a protected object can be
changed; a protected namespace is only moved with `force`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from catalog.models import Namespace, Tabular
from catalog.services.pointer import gone
from catalog.tabular_types import type_of, word_of
from lakewarden.authz.interface import Granted
from lakewarden.db_transaction import changing
from lakewarden.errors import InvalidArgument, LakewardenError, NoSuchNamespace, Protected
from lakewarden.events.change_recording import Change, record

MAX_REASON_LENGTH = 1000

O = TypeVar("O", Namespace, Tabular)  # noqa: E741 an object


@dataclass(frozen=True, slots=True)
class Protection:
    """`by` and `at` say who set it and when; `updated_at` is the last change of the object itself."""

    protected: bool
    by: str | None
    at: datetime | None
    reason: str | None
    updated_at: datetime | None


def of(granted: Granted[Namespace] | Granted[Tabular]) -> Protection:
    return _shown(granted.target)


def set_on_namespace(granted: Granted[Namespace], *, protected: bool, reason: str | None) -> Protection:
    """Protect a namespace, or remove its protection; repeating the current state changes nothing.

    Raises InvalidArgument for a reason that cannot be stored, NoSuchNamespace when it was dropped meanwhile.
    """
    return _set(granted, protected=protected, reason=reason)


def set_on_tabular(granted: Granted[Tabular], *, protected: bool, reason: str | None) -> Protection:
    """As `set_on_namespace`, for an object in a namespace; raises its kind's 404 when it was dropped meanwhile."""
    return _set(granted, protected=protected, reason=reason)


def ensure_unprotected(target: Namespace | Tabular) -> None:
    """Raises Protected. Reads the row again: the caller's transaction has locked it, and removes it next."""
    found = type(target)._default_manager.filter(id=target.id).values_list("protection", flat=True).first()  # noqa: SLF001 Django's documented name
    if found is not None:
        kind = _kind(target)
        route = f"/management/v1/warehouse/{target.warehouse_id}/{kind}/{_id(target)}/protection"
        why = f" ({found['reason']})" if found.get("reason") else ""
        since = found["at"].replace("+00:00", "Z")  # as the answers write it
        raise Protected(
            f"{word_of(kind).capitalize()} {target} is protected from deletion by {found['by']} "
            f"since {since}{why}. "
            f'Remove the protection first: POST {{"protected": false}} to {route}'
        )


def _set(granted: Granted[O], *, protected: bool, reason: str | None) -> Protection:
    target, context = granted.target, granted.context
    _check(reason, protected=protected)
    with changing():
        rows = type(target)._default_manager.select_for_update()  # noqa: SLF001 Django's documented name
        found = rows.filter(id=target.id).first()
        if found is None:
            raise _gone(target)
        before = found.protection
        if protected == (before is not None) and (before is None or reason in {None, before["reason"]}):
            return _shown(found)
        at = timezone.now()
        found.protection = {"by": context.caller.id, "at": at.isoformat(), "reason": reason} if protected else None
        found.updated_at = at
        fields = ["protection", "updated_at"]
        if isinstance(found, Namespace):
            # a tabular's version is its document's
            found.version = F("version") + 1
            fields.append("version")
        found.save(update_fields=fields)
        record(_change(target, {"protected": protected, "reason": reason, "before": before}), context)
    return _shown(found)


def _check(reason: str | None, *, protected: bool) -> None:
    if reason is None:
        return
    if not protected:
        raise InvalidArgument("A reason is only allowed with a protection: omit it when 'protected' is false")
    if len(reason) > MAX_REASON_LENGTH:
        raise InvalidArgument(f"Invalid reason: {len(reason)} characters, at most {MAX_REASON_LENGTH} are allowed")
    for character in reason:
        if (character < " " and character != "\n") or character == "\x7f" or "\ud800" <= character <= "\udfff":
            raise InvalidArgument(f"Invalid reason: it contains the character {character!r}, which cannot be stored")


def _shown(target: Namespace | Tabular) -> Protection:
    kept = target.protection
    if kept is None:
        return Protection(protected=False, by=None, at=None, reason=None, updated_at=target.updated_at)
    at = datetime.fromisoformat(kept["at"])
    return Protection(protected=True, by=kept["by"], at=at, reason=kept["reason"], updated_at=target.updated_at)


def _kind(target: Namespace | Tabular) -> str:
    return "namespace" if isinstance(target, Namespace) else str(target.kind)


def _event(target: Namespace | Tabular) -> str:
    return "Namespace" if isinstance(target, Namespace) else type_of(target).event


def _id(target: Namespace | Tabular) -> UUID:
    """The one that callers know."""
    return target.uuid if isinstance(target, Tabular) else target.id


def _gone(target: Namespace | Tabular) -> LakewardenError:
    return gone(target) if isinstance(target, Tabular) else NoSuchNamespace(f"Namespace does not exist: {target}")


def _change(target: Namespace | Tabular, data: dict[str, object]) -> Change:
    kind = _kind(target)
    namespace = target if isinstance(target, Namespace) else target.namespace
    name = {} if isinstance(target, Namespace) else {"name": target.name}
    plain = {**name, "namespace": namespace.path, "warehouse-id": str(namespace.warehouse_id), **data}
    return Change(f"set{_event(target)}Protection", kind, str(_id(target)), namespace.warehouse.project_id, plain)
