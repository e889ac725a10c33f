"""The hot reads' dispatch: paths and labels are those of Django's routes, a caller is looked up once."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from django.urls import resolve

from catalog.api.hot import dispatch as dispatching
from catalog.api.hot.call import HotCall, HotRead, KnownCaller
from catalog.api.hot.dispatch import dispatch
from catalog.api.urls import ROUTES
from lakewarden.authn.interface import VerifiedToken
from lakewarden.authz.actions import ObjectType, TableAction
from lakewarden.context import PrincipalId
from lakewarden.hot.routes import Answer, HotRequest
from lakewarden.http.call_recording import template

ID = "01234567-89ab-cdef-0123-456789abcdef"
HOT = {f"/catalog{route.template}": route.hot for route in ROUTES if route.hot}


class Seen:
    """Answers with what it was called with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.look_ups = 0
        self.calls: list[HotCall] = []
        read = HotRead(self.answer, TableAction.GET_METADATA, ObjectType.TABLE)
        self.route = dispatch({path: [read] for path in HOT})
        monkeypatch.setattr(dispatching, "_caller", self._caller)

    async def answer(self, call: HotCall) -> Answer | None:
        self.calls.append(call)
        return 200, [], b""

    def ask(self, path: str, method: str = "GET") -> HotCall | None:
        self.calls.clear()
        self.look_ups = 0
        asyncio.run(self.route(HotRequest(method, "http", path.encode("latin-1"), b"", {})))  # type: ignore[arg-type]
        return self.calls[0] if self.calls else None

    def _caller(self, _: Any) -> KnownCaller:
        self.look_ups += 1
        token = VerifiedToken("oidc~alice", None, None, "human", "https://issuer.test", 0.0)
        return KnownCaller(token, (PrincipalId(token.id), (), None))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


@pytest.mark.parametrize("path", HOT)
def test_labels_are_those_of_calls_through_django(seen: Seen, path: str) -> None:
    url = path.format(prefix=ID, namespace="a", table="t", table_id="i", view="v") if "{" in path else path
    for method in ("GET", "HEAD"):
        call = seen.ask(url, method)
        assert call is not None
        assert call.label == template(method, resolve(url).route)
        assert seen.look_ups == 1


def test_a_key_holds_what_the_database_compares(seen: Seen) -> None:
    call = seen.ask(f"/catalog/v1/{ID}/namespaces/A%1FB/tables/My+T%c3%a4ble")
    assert call is not None
    warehouse, path, name = call.key
    assert warehouse == UUID(ID)
    assert (path, name) == ("a\x1fb", "my täble")


@pytest.mark.parametrize(
    "path",
    [
        "/catalog/v1/nobody/namespaces/a",
        f"/catalog/v1/{ID}/namespaces/a%00b",
        f"/catalog/v1/{ID}/namespaces/a/tables/t%00",
        f"/catalog/v1/{ID}/namespaces/\xfc",
        f"/catalog/v1/{ID}/namespaces/a/tables/t/credentials",
        f"/catalog/v1/{ID[:-1]}-/namespaces/a",
        "/catalog/v1/config/",
        "/catalog/v1/" + "x" * 5000,
    ],
)
def test_what_is_odd_is_left_to_django_before_the_caller_is_looked_up(seen: Seen, path: str) -> None:
    assert seen.ask(path) is None
    assert seen.look_ups == 0


def test_other_methods_are_left_to_django(seen: Seen) -> None:
    assert seen.ask(f"/catalog/v1/{ID}/namespaces/a", "POST") is None
    assert seen.look_ups == 0
