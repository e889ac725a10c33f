"""The storage of a warehouse is changed by a form: checked, kept as far as the form does not show it, never overwritten."""

import re
from html import unescape
from pathlib import Path

from console import storage_forms
from tenants.models import Warehouse
from tests.integration.console.visitor import Visitor, send, text_of
from tests.servers.asgi_client import AsgiClient


def address(warehouse: Warehouse) -> str:
    return f"/console/warehouses/{warehouse.id}/storage"


def test_an_empty_warehouse_moves_after_a_check(visitor: Visitor, warehouse: Warehouse, tmp_path: Path) -> None:
    browser, page = visitor("admin"), address(warehouse)
    shown = browser.get(page).body.decode()
    assert str(tmp_path / "lake") in shown
    seen = re.findall(r'name="seen" value="(\w+)"', shown)[0]
    fields = {"base-path": str(tmp_path / "other"), "seen": seen}
    assert "All checks passed" in send(browser, page, f"{page}/check", **fields).body.decode()
    warehouse.refresh_from_db()
    assert warehouse.location.endswith("/lake")
    assert send(browser, page, f"{page}/change", **fields).status == 302
    warehouse.refresh_from_db()
    assert warehouse.location.endswith("/other")
    late = send(visitor("admin"), page, f"{page}/change", **fields | {"base-path": str(tmp_path / "third")})
    assert "/other now), so what you typed was not saved yet" in text_of(late)
    assert str(tmp_path / "third") in late.body.decode(), "what was typed stays"
    warehouse.refresh_from_db()
    assert warehouse.location.endswith("/other")


def test_a_mistake_changes_nothing(visitor: Visitor, warehouse: Warehouse, admin: AsgiClient) -> None:
    browser, page = visitor("admin"), address(warehouse)
    seen = re.findall(r'name="seen" value="(\w+)"', browser.get(page).body.decode())[0]
    answer = send(browser, page, f"{page}/change", **{"base-path": "/etc/<b>", "seen": seen})
    assert "storage.local_roots" in unescape(answer.body.decode())
    assert "/etc/<b>" not in answer.body.decode()
    warehouse.refresh_from_db()
    assert warehouse.location.endswith("/lake")


def test_what_the_form_does_not_show_stays() -> None:
    before = {"type": "s3", "bucket": "lake", "region": "eu-central-1", "sts-enabled": True, "storage-layout": {"a": 1}}
    typed = storage_forms.typed_of("s3", before)
    assert typed["sts-enabled"] == "true"
    assert storage_forms.changed_profile("s3", before, typed) == before | {"path-style-access": False}
    changed = storage_forms.changed_profile("s3", before, typed | {"bucket": "pond", "sts-enabled": ""})
    assert (changed["bucket"], changed["sts-enabled"], changed["storage-layout"]) == ("pond", False, {"a": 1})


def test_the_form_of_cloudflare_r2_sends_what_its_credential_needs(visitor: Visitor, warehouse: Warehouse) -> None:
    page = "/console/new-warehouse"
    fields = {"type": "r2", "warehouse-name": "r2", "bucket": "lake-on-r2", "days": "0"}
    fields |= {"endpoint": "https://127.0.0.1:1", "credential-type": "cloudflare-r2", "credential-account-id": "0a"}
    secrets = {
        "credential-access-key-id": "AK",
        "credential-secret-access-key": "quiet-word-1",
        "credential-token": "quiet-word-2",
    }
    answer = send(visitor("admin"), f"{page}?type=r2", f"{page}/check", **fields, **secrets)
    said = text_of(answer)
    assert "The settings are complete passed" in said.replace("  ", " "), said
    assert "quiet-word" not in answer.body.decode()
    sent = fields | secrets
    assert storage_forms.profile_of("r2", sent)["flavor"] == "s3-compat"
    assert storage_forms.credential_of("r2", sent) == {
        "type": "s3",
        "credential-type": "cloudflare-r2",
        "account-id": "0a",
        "access-key-id": "AK",
        "secret-access-key": "quiet-word-1",
        "token": "quiet-word-2",
    }
