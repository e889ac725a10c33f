"""Drops namespaces, restores them, and lets the time pass in which they can be restored."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.models import Namespace, Tabular
from catalog.services.deletion import expire
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer

SetProfile = Callable[[int | None], None]


@pytest.fixture
def set_profile(lake: Lake) -> SetProfile:
    """Has what is dropped be kept for so many seconds, or (None) not at all."""

    def change(seconds: int | None) -> None:
        profile = {"type": "hard"} if seconds is None else {"type": "soft", "expiration-seconds": seconds}
        assert lake.client.post(route(lake, "delete-profile"), {"delete-profile": profile}).status == 200

    return change


def route(lake: Lake, rest: str) -> str:
    return f"/management/v1/warehouse/{lake.warehouse_id}/{rest}"


def drop(lake: Lake, path: Any = "sales", **query: str) -> Answer:
    return lake.client.delete(lake.namespace(path, **{"recursive": "true", **query}))


def undrop(lake: Lake, *targets: Namespace | Tabular) -> Answer:
    told = [{"type": getattr(each, "kind", "namespace"), "id": str(getattr(each, "uuid", each.id))} for each in targets]
    return lake.client.post(route(lake, "deleted-tabulars/undrop"), {"targets": told})


def namespace(*path: str) -> Namespace:
    return Namespace.everything.get(path=list(path))


def deleted(lake: Lake, kind: str) -> list[dict[str, Any]]:
    return list(lake.client.get(route(lake, f"deleted-{kind}")).json()[kind])


def pass_time(seconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("update deletion set expires_at = expires_at - make_interval(secs => %s)", [seconds])


def run_job() -> int:
    (job,) = ProcrastinateJob.objects.filter(task_name="expire_deletion")
    return expire.expire_deletion(**job.args)


def tasks(lake: Lake) -> list[dict[str, Any]]:
    asked = {"queue-name": ["soft_deletion"]}
    return list(lake.client.post(route(lake, "task/list"), asked).json()["tasks"])


def cancel(lake: Lake) -> Answer:
    body = {"action": {"action-type": "cancel"}, "task-ids": [each["task-id"] for each in tasks(lake)]}
    return lake.client.post(route(lake, "task/control"), body)
