"""Two people with accounts at a real Keycloak, on a server for which a real OpenFGA decides: from the first start on."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pytest
import requests
from playwright.sync_api import Browser, Page, expect
from pyiceberg.catalog import load_catalog

from tests.servers import keycloak as keycloak_server
from tests.servers import openfga
from tests.servers.keycloak import Keycloak, Realm
from tests.servers.lakewarden_serve import LakewardenServer, prepared
from tests.servers.openfga import OpenFgaServer

CLIENT = "console"
LIFESPAN_S = 31
"""Of access tokens: a session renews one 30 seconds before it expires, so nearly every page does."""


@dataclass(frozen=True)
class Installation:
    keycloak: Keycloak
    realm: Realm
    decider: OpenFgaServer
    server: LakewardenServer

    def events(self, kind: str) -> list[dict[str, str]]:
        """What Keycloak has recorded for the client, newest first."""
        found: list[dict[str, str]] = self.keycloak.admin("GET", f"/lake/events?client={CLIENT}&type={kind}")
        return found


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    with keycloak_server.start() as keycloak, openfga.start() as decider:
        realm = keycloak.create_realm("lake")
        settings = {
            "LAKEWARDEN__OPENID__OIDC__ISSUER": realm.issuer,
            "LAKEWARDEN__OPENID__OIDC__AUDIENCE": "lakewarden",
            "LAKEWARDEN__CONSOLE__CLIENT_ID": CLIENT,
            "LAKEWARDEN__CONSOLE__SCOPE": "openid",
            "LAKEWARDEN__CONSOLE__CLIENT_SECRET": "console-secret",
            "LAKEWARDEN__AUTHORIZATION__BACKEND": "openfga",
            "LAKEWARDEN__OPENFGA__API_URL": decider.url,
            "LAKEWARDEN__OPENFGA__API_TOKEN": decider.api_key,
        }
        with prepared(settings) as server:
            server.start()
            keycloak.admin("POST", "/lake/clients", client_of(server.uri))
            kept = {"eventsEnabled": True, "enabledEventTypes": ["LOGIN", "LOGOUT", "REFRESH_TOKEN"]}
            keycloak.admin("PUT", "/lake/events/config", kept)
            yield Installation(keycloak, realm, decider, server)


def client_of(address: str) -> dict[str, object]:
    return {
        "clientId": CLIENT,
        "secret": "console-secret",
        "standardFlowEnabled": True,
        "redirectUris": [f"{address}/console/callback"],
        "defaultClientScopes": ["basic", "profile", "roles", "catalog"],
        "attributes": {
            "pkce.code.challenge.method": "S256",
            "access.token.lifespan": str(LIFESPAN_S),
            "post.logout.redirect.uris": f"{address}/console",
        },
    }


@contextmanager
def person(browser: Browser, installation: Installation, name: str) -> Iterator[Page]:
    """A browser in which they have just signed in at Keycloak."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(30_000)
    try:
        page.goto(f"{installation.server.uri}/console")
        page.get_by_role("link", name="Sign in").click()
        sign_in(page, name)
        yield page
    finally:
        context.close()


def sign_in(page: Page, name: str) -> None:
    page.locator("#username").fill(name)
    page.locator("#password").fill(f"{name}-password")
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/**")


def own_id(page: Page) -> str:
    page.locator(".menu summary").click()
    return page.locator(".sheet p").first.inner_text()


def application_id(installation: Installation) -> str:
    token = installation.realm.client_token("spark")
    address = f"{installation.server.management_uri}/v1/whoami"
    known = requests.get(address, headers={"authorization": f"Bearer {token}"}, timeout=30)
    assert known.ok, known.text  # rights are given to those who have called once
    claims = token.split(".")[1]
    return f"oidc~{json.loads(base64.urlsafe_b64decode(claims + '=='))['sub']}"


def test_from_the_first_start_to_a_restored_table(browser: Browser, installation: Installation) -> None:
    with person(browser, installation, "alice") as alice, person(browser, installation, "bob") as bob:
        bootstrap(alice)
        create_warehouse(alice, installation)
        grant(alice, application_id(installation), "create")
        grant(alice, application_id(installation), "modify")
        first = write(installation)
        expect(bob.get_by_role("heading", name="Welcome to Lakewarden")).to_be_visible()
        bob.goto(f"{installation.server.uri}/console/warehouses")
        expect(bob.get_by_text("You have no project yet")).to_be_visible()
        find_and_open(alice)
        grant_on_table(alice, own_id(bob))
        bob.goto(f"{installation.server.uri}/console/tree")
        bob.get_by_role("treeitem", name="lake", exact=True).press("ArrowRight")
        bob.get_by_role("treeitem", name="sales", exact=True).press("ArrowRight")
        bob.get_by_role("treeitem", name="orders", exact=True).press("Enter")
        bob.get_by_role("link", name="Data", exact=True).click()
        expect(bob.get_by_text("3 rows, in no particular order")).to_be_visible(timeout=60_000)
        bob.get_by_role("link", name="Manage").click()
        expect(bob.get_by_text("You may not drop it")).to_be_visible()
        protect_drop_and_bring_back(alice)
        bob.get_by_role("link", name="Back to the table").click()
        expect(bob.get_by_role("heading", name="orders", level=1)).to_be_visible()
        restore(alice, first)
        bob.get_by_role("link", name="Data", exact=True).click()
        expect(bob.get_by_text("1 row, in no particular order")).to_be_visible(timeout=60_000)


def test_tokens_are_renewed_and_signing_out_ends_both_sessions(browser: Browser, installation: Installation) -> None:
    with person(browser, installation, "bob") as page:
        page.wait_for_timeout(1500)  # the token has less than 30 seconds left
        before = len(installation.events("REFRESH_TOKEN"))
        page.goto(f"{installation.server.uri}/console/design")
        expect(page.get_by_role("heading", name="Design", exact=True)).to_be_visible()
        assert len(installation.events("REFRESH_TOKEN")) > before
        page.locator(".menu summary").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("link", name="Sign out there, too").click()
        page.wait_for_url(f"{installation.server.uri}/console")
        assert installation.events("LOGOUT")
        page.goto(f"{installation.server.uri}/console/roles")
        expect(page.locator("#password")).to_be_visible()
        sign_in(page, "bob")
        assert page.url == f"{installation.server.uri}/console/roles", "back to the page that was asked for"


def test_a_decider_that_is_down_is_said(browser: Browser, installation: Installation) -> None:
    """The last one: in memory, it forgets all rights."""
    with person(browser, installation, "alice") as alice, person(browser, installation, "bob") as bob:
        alice.goto(f"{installation.server.uri}/console/roles")
        alice.get_by_label("Name").fill("analysts")
        alice.get_by_role("button", name="Create").click()
        expect(alice.get_by_role("heading", name="analysts", level=1)).to_be_visible()
        installation.decider.stop()
        bob.goto(alice.url)  # nothing is known of bob's rights on it
        expect(bob.get_by_role("heading", name="This cannot be answered now")).to_be_visible()
        expect(bob.get_by_text("OpenFGA")).to_be_visible()


def bootstrap(page: Page) -> None:
    page.get_by_role("button", name="Become the administrator").click()
    expect(page.get_by_text("There is no warehouse yet")).to_be_visible()


def create_warehouse(page: Page, installation: Installation) -> None:
    page.get_by_role("link", name="New warehouse").click()
    page.get_by_role("link", name="Directory").click()
    page.get_by_label("Name").fill("lake")
    page.get_by_label("Path").fill(str(installation.server.local_root / "lake"))
    page.get_by_role("button", name="Create the warehouse").click()
    expect(page.get_by_role("heading", name="lake", level=1)).to_be_visible()


def grant(page: Page, principal: str, privilege: str) -> None:
    if not page.get_by_label("User or role").count():
        page.get_by_role("link", name="Rights").click()
    page.get_by_label("User or role").fill(principal)
    page.get_by_label("may").select_option(privilege)
    page.get_by_role("button", name="Grant", exact=True).click()
    expect(page.get_by_role("rowheader", name=re.compile(re.escape(principal)))).to_be_visible()


def write(installation: Installation) -> int:
    """An engine writes two snapshots; gives the first."""
    catalog = load_catalog(
        "lake",
        type="rest",
        uri=installation.server.catalog_uri,
        warehouse="lake",
        credential="spark:spark-secret",
        scope="catalog",
        **{"oauth2-server-uri": installation.realm.token_endpoint},
    )
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2, 3]}))
    return table.history()[0].snapshot_id


def find_and_open(page: Page) -> None:
    page.get_by_label(re.compile("^Find tables")).press_sequentially("orders", delay=30)
    page.locator("#found").get_by_role("link", name=re.compile("^orders table")).click()
    expect(page.get_by_role("heading", name="orders", level=1)).to_be_visible()


def grant_on_table(page: Page, principal: str) -> None:
    page.get_by_role("link", name="Manage").click()
    grant(page, principal, "select")
    page.go_back()
    page.go_back()


def protect_drop_and_bring_back(page: Page) -> None:
    page.get_by_role("button", name="Protect").click()
    expect(page.get_by_text("Nobody can drop this table")).to_be_visible()
    page.get_by_role("button", name="Lift the protection").click()
    page.get_by_label(re.compile("^To drop it")).fill("orders")
    page.get_by_role("button", name="Drop the table").click()
    page.get_by_label("Where you are").get_by_role("link", name="lake").click()
    page.get_by_role("link", name="What was dropped").click()
    page.get_by_role("button", name="Bring back").click()
    expect(page.get_by_text("Nothing to bring back")).to_be_visible()


def restore(page: Page, snapshot: int) -> None:
    find_and_open(page)
    page.get_by_role("link", name="Snapshots").click()
    page.get_by_label(f"first: snapshot {snapshot}").check()
    page.get_by_role("button", name="Restore the first").click()
    page.get_by_role("button", name="Restore the table").click()
    expect(page.get_by_role("heading", name=re.compile("snapshots, newest first"))).to_be_visible()
