"""Arranges events for tests: changes of objects that only the outbox knows, and what the log says."""

from django.db import connection, transaction

from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.events import log
from lakewarden.events.change_recording import Change, record

CONTEXT = RequestContext(caller=Caller(PrincipalId("oidc~alice")), request_id="r", user_agent="pytest")


def change(object_id: str, number: int, *, project: str = "p", kind: str = "updateTable") -> None:
    """In a transaction of its own."""
    with transaction.atomic():
        record_change(object_id, number, project=project, kind=kind)


def record_change(object_id: str, number: int, *, project: str = "p", kind: str = "updateTable") -> None:
    data = {"name": object_id, "namespace": ["ns"], "warehouse-id": "w", "metadata-location": "m", "version": number}
    record(Change(kind, "table", object_id, project, data), CONTEXT)


def logged() -> list[tuple[str, int]]:
    """The objects and the numbers of their changes, in the order of the log."""
    return [(each.object_id, each.data["version"]) for each in log.read(after=0, limit=100_000)]


def all_moved() -> int:
    moved = 0
    while found := log.append_new():
        moved += found
    return moved


def outbox_count() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from outbox_event")
        return int(cursor.fetchone()[0])
