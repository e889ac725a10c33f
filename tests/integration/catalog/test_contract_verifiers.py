"""Verifiers of data contracts: they are asked about every change, and one that hangs costs only its own tables."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from pydantic import SecretStr

from catalog.models import Tabular
from catalog.services.contracts import effective, verifiers
from lakewarden import config
from lakewarden.config import ContractsConfig, VerifierConfig
from lakewarden.errors import ContractViolated
from tests.integration.catalog.contracts import ID, PLACE, at, becomes, field, put, refused, set_
from tests.integration.catalog.lake import Lake, identifier, set_properties
from tests.integration.catalog.observed import metadata_files
from tests.integration.catalog.together import Committing, together
from tests.integration.catalog.verifier import SECRET, Verifier, allow, deny, running
from tests.servers.asgi_client import AsgiClient

Configure = Callable[..., None]


@pytest.fixture
def verifier() -> Iterator[Verifier]:
    with running() as found:
        yield found


@pytest.fixture
def configured(verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> Iterator[Configure]:
    """Changes settings of the verifier `gov`."""

    def configure(**changed: Any) -> None:
        chosen = {"url": verifier.url, "secret": SecretStr(SECRET), "allow_private_addresses": True, **changed}
        contracts = ContractsConfig(verifiers={"gov": VerifierConfig.model_validate(chosen)})
        now = config.current().model_copy(update={"contracts": contracts})
        monkeypatch.setattr(config, "current", lambda: now)
        verifiers._line.cache_clear()
        verifiers._waiting.cache_clear()

    yield configure
    verifiers._line.cache_clear()
    verifiers._waiting.cache_clear()


@pytest.fixture
def orders(lake: Lake, admin: AsgiClient, configured: Configure) -> Lake:
    """The tables `orders`, about which the verifier is asked, and `bills`."""
    configured()
    for name in ("orders", "bills"):
        assert lake.create_table(name).status == 200
    set_(admin, at(lake, "orders"), verifier={"name": "gov"})
    return lake


@pytest.mark.parametrize("padding", [0, 40_000], ids=["on the loop", "in a thread"])
def test_a_verifier_is_asked_what_would_change_and_can_deny_it(
    orders: Lake, verifier: Verifier, base: Path, padding: int
) -> None:
    assert orders.commit("orders", *becomes(ID, PLACE, field(3, "more")), set_properties(a="x" * padding)).status == 200
    (asked,) = verifier.asked
    assert verifier.unsigned == 0
    assert asked["change"] == "commit"
    assert asked["object"] | {"uuid": "", "warehouse-id": ""} == {
        "type": "table",
        "project-id": asked["object"]["project-id"],
        "warehouse-id": "",
        "warehouse": "lake",
        "namespace": ["sales"],
        "name": "orders",
        "uuid": "",
    }
    assert (asked["actor"], asked["dry-run"]) == ("oidc~engine", False)
    assert [each["name"] for each in asked["old-schema"]["fields"]] == ["id", "place"]
    assert [each["name"] for each in asked["new-schema"]["fields"]] == ["id", "place", "more"]
    assert asked["updates"] == [{"action": each} for each in ("add-schema", "set-current-schema", "set-properties")]
    assert asked["properties"] == {"set": {"a": "x" * padding}, "removed": []}
    verifier.say, before = deny, metadata_files(base)
    answer = orders.commit("orders", set_properties(b="x" * padding))
    refused(answer, "no column may be called so; ask first", "verifier gov", "set on table sales.orders")
    assert metadata_files(base) == before
    # a denial is not remembered, nor is what was allowed, and nobody is asked twice about one commit
    assert len(verifier.asked) == 2
    verifier.say = allow
    assert orders.commit("orders", set_properties(b="x" * padding)).status == 200
    assert len(verifier.asked) == 3


def test_a_verifier_of_definitions_is_not_asked_about_data(orders: Lake, admin: AsgiClient, verifier: Verifier) -> None:
    set_(admin, at(orders, "orders"), verifier={"name": "gov", "asked-about": "changes-of-definition"})
    upgrade = {"action": "upgrade-format-version", "format-version": 3}
    assert orders.commit("orders", upgrade).status == 200
    assert verifier.asked == []
    assert orders.commit("orders", set_properties(a="1")).status == 200
    assert len(verifier.asked) == 1


@pytest.mark.parametrize(
    ("say", "reason"),
    [
        (lambda _: (500, b""), "answered 500"),
        (lambda _: (302, b""), "answered 302"),
        (lambda _: (200, b"yes"), "something else than a decision"),
        (lambda _: (200, b'{"decision": "perhaps"}'), "something else than a decision"),
        (lambda _: (200, b'{"decision": "allow", "x": "' + b"x" * 100_000 + b'"}'), "something else than a decision"),
    ],
    ids=["fails", "redirects", "nonsense", "undecided", "too much"],
)
def test_what_a_verifier_does_not_say_is_not_a_yes(
    orders: Lake, admin: AsgiClient, verifier: Verifier, say: Any, reason: str
) -> None:
    verifier.say = say
    answer = orders.commit("orders", set_properties(a="1"))
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert reason in answer.json()["error"]["message"]
    assert "a" not in orders.load("orders")["metadata"]["properties"]
    set_(admin, at(orders, "orders"), verifier={"name": "gov", "on-failure": "allow"})
    assert orders.commit("orders", set_properties(a="1")).status == 200


def test_a_verifier_at_a_private_address_or_that_is_not_configured_is_a_failure(
    orders: Lake, admin: AsgiClient, configured: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(allow_private_addresses=False)
    answer = orders.commit("orders", set_properties(a="1"))
    assert answer.status == 503
    assert "private address 127.0.0.1" in answer.json()["error"]["message"]
    now = config.current().model_copy(update={"contracts": ContractsConfig()})
    monkeypatch.setattr(config, "current", lambda: now)
    verifiers._line.cache_clear()
    answer = orders.commit("orders", set_properties(a="1"))
    assert answer.status == 503
    assert "is not configured on this server" in answer.json()["error"]["message"]
    answer = put(admin, at(orders, "bills"), verifier={"name": "gov"})
    assert answer.status == 400
    assert "'gov' is not configured" in answer.json()["error"]["message"]


def test_a_verifier_that_hangs_costs_only_commits_to_its_own_tables(
    orders: Lake, verifier: Verifier, configured: Configure
) -> None:
    configured(timeout_s=5)
    verifier.free.clear()
    with ThreadPoolExecutor(12) as clients:
        started = time.monotonic()
        hung = [
            clients.submit(orders.commit, "orders", set_properties(**{f"k{number}": "x" * padding}))
            for number in range(6)
            for padding in (0, 40_000)
        ]
        while not verifier.asked:
            assert time.monotonic() - started < 10, "it was not asked"
            time.sleep(0.01)
        assert orders.commit("bills", set_properties(a="1")).status == 200
        assert orders.commit("bills", set_properties(a="x" * 40_000)).status == 200
        assert not any(each.done() for each in hung[:2]), "the verifier has answered"
        assert {each.result().status for each in hung} == {503}
    verifier.free.set()
    assert orders.commit("orders", set_properties(a="1")).status == 200


def test_no_transaction_is_open_while_a_verifier_answers(
    orders: Lake, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when races are lost again and again, after which other commits lock their row."""
    open_then: list[bool] = []
    ask = verifiers.ask

    def asking(*arguments: Any) -> Any:
        open_then.append(connection.in_atomic_block)
        return ask(*arguments)

    lost = iter([True] * 5)
    move = Tabular.objects.move

    def moving(*arguments: Any) -> bool:
        return False if next(lost, False) else move(*arguments)

    monkeypatch.setattr(verifiers, "ask", asking)
    monkeypatch.setattr(type(Tabular.objects), "move", lambda _, *arguments: moving(*arguments))
    assert orders.commit("orders", set_properties(a="x" * 40_000)).status == 200
    assert open_then == [False] * 6


def test_a_denied_commit_of_a_group_costs_the_others_nothing(orders: Lake, verifier: Verifier) -> None:
    def say(asked: dict[str, Any]) -> tuple[int, bytes]:
        return deny(asked) if "bad" in asked["properties"]["set"] else allow(asked)

    verifier.say = say
    committing = Committing(orders.warehouse_id)
    rules = effective.of_tabular(Tabular.objects.select_related("namespace__warehouse").get(name="orders"))
    wanted = [{"a": "1"}, {"bad": "1"}, {"b": "1"}, {"bad": "2"}, {"c": "1"}]
    outcomes = together(*(replace(committing.to("orders", set_properties(**each)), rules=rules) for each in wanted))
    assert [isinstance(each, ContractViolated) for each in outcomes] == [False, True, False, True, False]
    assert {"a", "b", "c"} <= orders.load("orders")["metadata"]["properties"].keys()
    assert "bad" not in orders.load("orders")["metadata"]["properties"]


def test_creations_views_and_transactions_are_verified(
    lake: Lake, admin: AsgiClient, verifier: Verifier, configured: Configure
) -> None:
    configured()
    set_(admin, at(lake, "sales"), verifier={"name": "gov"})
    assert lake.create_table("orders").status == 200
    assert lake.create_table("more").status == 200
    assert lake.create_view("v").status == 200
    assert [(each["change"], each["object"]["type"], each["old-schema"]) for each in verifier.asked] == [
        ("create", "table", None), ("create", "table", None), ("create", "view", None)]  # fmt: skip
    verifier.say = deny
    refused(lake.create_table("other"), "verifier gov")
    refused(lake.create_view("w"), "verifier gov")
    refused(lake.create_table("staged", stage_create=True), "verifier gov")
    changes = [{"identifier": identifier("orders"), "requirements": [], "updates": [set_properties(a="1")]}]
    refused(lake.client.post(lake.path("transactions", "commit"), {"table-changes": changes}), "verifier gov")
    body = {"source": identifier("orders"), "destination": identifier("orders", within="other")}
    assert lake.create_namespace("other").status == 200
    assert lake.client.post(lake.path("tables", "rename"), body).status == 204
    back = {"source": body["destination"], "destination": body["source"]}
    refused(lake.client.post(lake.path("tables", "rename"), back), "verifier gov")


def test_a_change_that_is_too_large_to_be_verified_is_refused(
    orders: Lake, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = config.current().contracts.model_copy(update={"max_verified_bytes": 1024})
    now = config.current().model_copy(update={"contracts": small})
    monkeypatch.setattr(config, "current", lambda: now)
    refused(orders.commit("orders", set_properties(a="x" * 2000)), "contracts.max_verified_bytes")
    assert verifier.asked == []
