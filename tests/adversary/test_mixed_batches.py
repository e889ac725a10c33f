"""Requests of every kind that reach one batch together: each has its own outcome, and the calm ones lose nothing."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from catalog.services.creation_writer import additions
from lakewarden.audit.models import AuditEntry
from tests.adversary.gates import SOON_S, Gate, wait_until, waiting
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import eventually, metadata_files, own_properties, pointed_at
from tests.servers.asgi_client import Answer

STALE = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
TOO_LARGE = {"a": "x" * (300 * 1024)}
CALM = 5

Sent = Callable[[], Answer]


def statuses(pool: ThreadPoolExecutor, sent: dict[str, Sent]) -> Iterator[tuple[str, int]]:
    asked = {name: pool.submit(send) for name, send in sent.items()}
    for name, answer in asked.items():
        yield name, answer.result(SOON_S).status


@pytest.mark.parametrize("has_keys", [True, False])
def test_commits_of_every_kind_in_one_batch(
    lake: Lake, reader: Lake, outsider: Lake, base: Path, monkeypatch: pytest.MonkeyPatch, *, has_keys: bool
) -> None:
    """Rights: `reader` may read the table, `outsider` sees nothing of it; both commit to it with all others."""
    for name in ("bills", "gone"):
        assert lake.create_table(name).status == 200
    assert lake.client.delete(lake.table("gone") + "?purgeRequested=false").status == 204
    for name in ("orders", "bills"):
        assert lake.commit(name, set_properties(first="1")).status == 200

    def posted(who: Lake, table: str, body: object) -> Sent:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json"} | ({"idempotency-key": str(uuid4())} if has_keys else {})
        return lambda: who.client.call("POST", who.table(table), body=content, headers=headers)

    def change(*requirements: object, **properties: str) -> object:
        return {"requirements": list(requirements), "updates": [set_properties(**properties)]}

    refused = {
        "malformed": (posted(lake, "orders", b'{"requirements": [], "updates": [{"action": 3}]}'), 400),
        "half a body": (posted(lake, "orders", b'{"requirements": ['), 400),
        "forbidden": (posted(reader, "orders", change(evil="1")), 403),
        "hidden": (posted(outsider, "orders", change(evil="1")), 404),
        "stale": (posted(lake, "orders", change(STALE, evil="1")), 409),
        "too large": (posted(lake, "orders", change(**TOO_LARGE)), 400),
        "on a dropped table": (posted(lake, "gone", change(evil="1")), 404),
        "on no table": (posted(lake, "never", change(evil="1")), 404),
    }
    calm = {f"calm {n}": (posted(lake, "orders", change(**{f"calm{n}": "1"})), 200) for n in range(CALM)}
    calm["calm elsewhere"] = (posted(lake, "bills", change(elsewhere="1")), 200)
    gate = Gate(monkeypatch)
    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(lake.commit, "orders", set_properties(second="1"))
        wait_until(lambda: gate.begun == 1)
        asked = {name: pool.submit(send) for name, (send, _) in (refused | calm).items()}
        # the stale one waits with the calm ones for the commit before, as it may be right after that
        wait_until(lambda: waiting() >= CALM + 1)
        gate.let_through(50)
        assert first.result(SOON_S).status == 200
        found = {name: each.result(SOON_S).status for name, each in asked.items()}
    assert found == {name: status for name, (_, status) in (refused | calm).items()}
    assert own_properties(lake, "orders") == {"first", "second", *(f"calm{n}" for n in range(CALM))}
    assert own_properties(lake, "bills") == {"first", "elsewhere"}
    assert AuditEntry.objects.filter(action="updateTable").count() == 3 + CALM + 1
    log = pointed_at(lake, "orders", "bills")
    folders = {file.parent for file in log}
    eventually(lambda: {file for file in metadata_files(base) if file.parent in folders} == log)


def test_creations_of_every_kind_in_one_batch(
    lake: Lake, reader: Lake, outsider: Lake, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: `reader` may read one table of the namespace, `outsider` sees nothing of it; both create with all others."""
    for name in ("warm", "warmer"):
        assert lake.create_table(name).status == 200
    carry_out, sizes = additions.TABULARS._carry_out, []

    async def noting(asked: object) -> object:
        sizes.append(len(asked))  # type: ignore[arg-type]
        return await carry_out(asked)  # type: ignore[arg-type]

    monkeypatch.setattr(additions.TABULARS, "_carry_out", noting)
    refused: dict[str, tuple[Sent, int]] = {
        "malformed": (lambda: lake.client.post(lake.namespace("sales", "tables"), {"name": "bad"}), 400),
        "forbidden": (lambda: reader.create_table("evil"), 403),
        "hidden": (lambda: outsider.create_table("evil"), 404),
        "taken": (lambda: lake.create_table("Orders"), 409),
        "too large": (lambda: lake.create_table("large", properties=TOO_LARGE), 400),
        "in no namespace": (lambda: lake.create_table("evil", within="never"), 404),
        "no name": (lambda: lake.create_table(""), 400),
    }
    calm: dict[str, tuple[Sent, int]] = {}
    for number in range(3 * CALM):
        calm[f"calm {number}"] = (lambda number=number: lake.create_table(f"calm{number}"), 200)  # type: ignore[misc]
    everything = refused | calm
    with ThreadPoolExecutor(len(everything)) as pool:
        found = dict(statuses(pool, {name: send for name, (send, _) in everything.items()}))
    assert found == {name: status for name, (_, status) in everything.items()}
    names = ["orders", "warm", "warmer", *(f"calm{number}" for number in range(3 * CALM))]
    listed = lake.client.get(lake.namespace("sales", "tables")).json()["identifiers"]
    assert sorted(each["name"] for each in listed) == sorted(names)
    assert sum(sizes) >= 3 * CALM
    eventually(lambda: metadata_files(base) == pointed_at(lake, *names))
