"""Tables are restored to earlier metadata files: after a look, with the rights and rules of commits, and never to a
file of others.
"""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lakewarden.audit.models import AuditEntry
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog import contracts
from tests.integration.catalog.lake import Lake, add_snapshot, set_branch, set_properties
from tests.integration.console.visitor import Visitor, send, text_of
from tests.servers.asgi_client import AsgiClient

WIDER: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "town", "type": "string", "required": False},
        {"id": 3, "name": "amount", "type": "int", "required": False},
    ],
}


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    made = Lake(admin, str(warehouse.id))
    assert made.create_namespace("sales").status == 200
    created = made.create_table("orders").json()["metadata"]
    first = add_snapshot(1, sequence=1, location=created["location"])
    assert made.commit("orders", first, set_branch("main", 1), set_properties(owner="dana")).status == 200
    return made


def state(lake: Lake) -> dict[str, Any]:
    """What a restoration brings back."""
    metadata = lake.load("orders")["metadata"]
    schema = next(each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"])
    spec = next(each for each in metadata["partition-specs"] if each["spec-id"] == metadata["default-spec-id"])
    order = next(each for each in metadata["sort-orders"] if each["order-id"] == metadata["default-sort-order-id"])
    kept = ("refs", "properties", "current-snapshot-id")
    return {name: metadata[name] for name in kept} | {
        "schema": schema["fields"],
        "spec": spec["fields"],
        "order": order["fields"],
    }


def change(lake: Lake) -> None:
    """A new column, another name of one, a partition field, a sort order, a snapshot, a tag, and properties."""
    by_id = {"source-id": 1, "transform": "identity"}
    order = {"order-id": 1, "fields": [{**by_id, "direction": "asc", "null-order": "nulls-first"}]}
    tag = {"action": "set-snapshot-ref", "ref-name": "audit", "type": "tag", "snapshot-id": 2}
    done = lake.commit(
        "orders",
        {"action": "add-schema", "schema": WIDER},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 1, "fields": [{**by_id, "name": "by_id"}]}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": order},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        add_snapshot(2, sequence=2, parent=1, location=lake.load("orders")["metadata"]["location"]),
        set_branch("main", 2),
        tag,
        set_properties(owner="mira", team="shipping"),
    )
    assert done.status == 200, done.body


def page_of(lake: Lake) -> str:
    uuid = lake.load("orders")["metadata"]["table-uuid"]
    return f"/console/warehouses/{lake.warehouse_id}/tables/{uuid}/metadata/restore"


def seen_on(page: bytes) -> str:
    return unescape(re.findall(r'name="seen" value="([^"]+)"', page.decode())[0])


def test_the_whole_state_comes_back_and_the_way_forward_stays(visitor: Visitor, lake: Lake) -> None:
    browser, base = visitor("admin"), page_of(lake)
    file, before = lake.load("orders")["metadata-location"], state(lake)
    change(lake)
    newest, after = lake.load("orders"), state(lake)
    tab = browser.get(base.replace("/metadata/restore", "?tab=metadata")).body.decode()
    (address,) = (unescape(each) for each in re.findall(r'href="([^"]+)"', tab) if quote(file, safe="") in each)
    look = browser.get(address)
    shown = text_of(look)
    for expected in ("amount: int", "town: string", "identity(id)", "Tag audit", "team", "shipping", "mira", "dana"):
        assert expected in shown
    assert lake.load("orders") == newest, "a look changes nothing"
    typed = {"file": file, "seen": seen_on(look.body)}
    assert "nothing was changed" in text_of(send(browser, address, f"{base}/now", **typed, name="Orders"))
    assert lake.load("orders") == newest

    assert send(browser, address, f"{base}/now", **typed, name="orders").status == 302
    assert state(lake) == before
    now = lake.load("orders")["metadata"]
    assert [each["snapshot-id"] for each in now["snapshots"]] == [1, 2]
    assert now["metadata-log"][-1]["metadata-file"] == newest["metadata-location"]
    assert now["last-column-id"] == newest["metadata"]["last-column-id"] == 3
    entry = AuditEntry.objects.order_by("-id").first()
    assert entry is not None
    assert entry.action == "updateTable"

    back = f"{base}?file={quote(newest['metadata-location'], safe='')}"
    seen = seen_on(browser.get(back).body)
    again = send(browser, back, f"{base}/now", file=newest["metadata-location"], seen=seen, name="orders")
    assert again.status == 302
    assert state(lake) == after


def test_what_was_committed_meanwhile_is_not_overwritten(visitor: Visitor, lake: Lake) -> None:
    browser, base = visitor("admin"), page_of(lake)
    file = lake.load("orders")["metadata-location"]
    change(lake)
    address = f"{base}?file={quote(file, safe='')}"
    seen = seen_on(browser.get(address).body)
    assert lake.commit("orders", set_properties(team="billing")).status == 200
    newest = lake.load("orders")
    told = send(browser, address, f"{base}/now", file=file, seen=seen, name="orders")
    assert "was changed after you opened this page" in text_of(told)
    assert lake.load("orders") == newest


def test_expired_snapshots_and_files_that_are_gone_are_named(visitor: Visitor, lake: Lake) -> None:
    browser, base = visitor("admin"), page_of(lake)
    file = lake.load("orders")["metadata-location"]
    change(lake)
    assert lake.commit("orders", {"action": "remove-snapshots", "snapshot-ids": [1]}).status == 200
    newest = lake.load("orders")
    address = f"{base}?file={quote(file, safe='')}"
    shown = text_of(browser.get(address))
    assert "main pointed to the snapshot 1 , which has expired" in shown
    assert "Choose a later file" in shown
    tab = base.replace("/metadata/restore", "?tab=metadata")
    told = send(browser, tab, f"{base}/now", file=file, seen=newest["metadata-location"], name="orders")
    assert "the snapshot 1 of that time has expired" in text_of(told)
    Path(file.removeprefix("file://")).unlink()
    assert "file is gone" in text_of(browser.get(tab))
    assert f"Metadata file does not exist: {file}" in text_of(browser.get(address))
    assert lake.load("orders") == newest


def test_a_data_contract_says_no_before_and_at_the_commit(visitor: Visitor, lake: Lake, admin: AsgiClient) -> None:
    browser, base = visitor("admin"), page_of(lake)
    file = lake.load("orders")["metadata-location"]
    change(lake)
    contracts.set_(admin, contracts.at(lake, "sales"), required_properties=["team"])
    newest = lake.load("orders")
    address = f"{base}?file={quote(file, safe='')}"
    shown = text_of(browser.get(address))
    assert "The data contract does not allow this" in shown
    tab = base.replace("/metadata/restore", "?tab=metadata")
    told = send(browser, tab, f"{base}/now", file=file, seen=newest["metadata-location"], name="orders")
    assert "The data contract does not allow this change" in text_of(told)
    assert lake.load("orders") == newest


def test_only_files_of_the_tables_own_log_are_read(visitor: Visitor, lake: Lake, grant: Grant) -> None:
    """Rights: write on the warehouse; the attacker's table names metadata of another one in its log."""
    other = lake.create_table("secret", properties={"key": "of others"}).json()
    own = lake.load("orders")
    mine = Path(own["metadata"]["location"].removeprefix("file://"))
    copied = mine / "metadata" / "copied.metadata.json"
    copied.write_text(json.dumps(other["metadata"]))
    log = [
        {"timestamp-ms": 1, "metadata-file": other["metadata-location"]},
        {"timestamp-ms": 2, "metadata-file": f"file://{copied}"},
    ]
    forged = mine / "metadata" / "v9.metadata.json"
    forged.write_text(json.dumps(own["metadata"] | {"metadata-log": log}))
    assert lake.client.post(lake.table("orders", "unregister")).status == 200
    body = {"name": "orders", "metadata-location": f"file://{forged}"}
    assert lake.client.post(lake.namespace("sales", "register"), body).status == 200
    browser, base = visitor("admin"), page_of(lake)
    tab = browser.get(base.replace("/metadata/restore", "?tab=metadata")).body.decode()
    assert quote(other["metadata-location"], safe="") not in tab
    for file in (other["metadata-location"], own["metadata-location"], "file:///etc/passwd", f"file://{copied}"):
        answer = browser.get(f"{base}?file={quote(file, safe='')}")
        assert answer.status == (200 if file.endswith("copied.metadata.json") else 404)
        assert "of others" not in text_of(answer)
    assert "The metadata file is of another table" in text_of(browser.get(f"{base}?file=file://{copied}"))


def test_who_may_only_read_looks_and_does_not_restore(visitor: Visitor, lake: Lake, grant: Grant) -> None:
    grant("bob", "select")
    browser, base = visitor("bob"), page_of(lake)
    file = lake.load("orders")["metadata-location"]
    change(lake)
    newest = lake.load("orders")
    address = f"{base}?file={quote(file, safe='')}"
    assert "takes the privilege write" in text_of(browser.get(address))
    sent = {"file": file, "seen": newest["metadata-location"], "name": "orders"}
    for name, status in (("bob", 403), ("stranger", 404)):
        assert send(visitor(name), "/console/warehouses", f"{base}/now", **sent).status == status
    assert lake.load("orders") == newest
