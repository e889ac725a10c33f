from base64 import b64decode
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import pytest

from lakewarden.authn.introspection import IntrospectionEndpoint
from lakewarden.authn.json_fetch import FetchFailed, JsonObject, ServesNobody
from lakewarden.authn.provider import Introspection, OidcProvider

ISSUER = "https://id.example.org"
PROVIDER = OidcProvider(id="oidc", issuer=ISSUER, audiences=())


class Web:
    def __init__(self, answer: JsonObject) -> None:
        self.answer = answer
        self.fetched = 0
        self.posted: list[tuple[str, bytes, Mapping[str, str]]] = []

    def fetch(self, _url: str) -> JsonObject:
        self.fetched += 1
        return {"issuer": ISSUER, "introspection_endpoint": f"{ISSUER}/introspect"}

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> JsonObject:
        self.posted.append((url, body, headers))
        if not self.answer:
            raise ServesNobody(url)
        return self.answer


def endpoint(web: Web, uri: str | None = None, *, pair: tuple[str, str] = ("lake", "s")) -> IntrospectionEndpoint:
    settings = Introspection(client_id=pair[0], client_secret=pair[1], uri=uri)
    return IntrospectionEndpoint(PROVIDER, settings, fetch=web.fetch, post=web.post)


def test_question_is_a_form_with_the_client_s_credentials() -> None:
    web = Web({"active": True, "sub": "ada"})

    assert endpoint(web, pair=("la:ke", "p%s+ ü")).ask("tok&en") == {"sub": "ada"}
    [(url, body, headers)] = web.posted
    assert url == f"{ISSUER}/introspect"
    assert parse_qs(body.decode()) == {"token": ["tok&en"], "token_type_hint": ["access_token"]}
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert b64decode(headers["Authorization"].removeprefix("Basic ")) == b"la%3Ake:p%25s%2B%20%C3%BC"


def test_endpoint_is_discovered_once_and_again_after_a_failure() -> None:
    web = Web({"active": False})
    asked = endpoint(web)
    asked.ask("a")
    asked.ask("b")
    assert web.fetched == 1

    web.answer = {}
    with pytest.raises(FetchFailed):
        asked.ask("c")
    web.answer = {"active": False}
    asked.ask("d")
    assert web.fetched == 2


def test_configured_endpoint_needs_no_discovery() -> None:
    web = Web({"active": False})
    assert endpoint(web, "https://other.example.org/i").ask("a") is None
    assert (web.fetched, web.posted[0][0]) == (0, "https://other.example.org/i")


def test_claims_that_are_null_are_missing() -> None:
    assert endpoint(Web({"active": True, "sub": "ada", "aud": None, "exp": None})).ask("a") == {"sub": "ada"}


@pytest.mark.parametrize("answer", [{"sub": "ada"}, {"active": "true"}, {"active": 1}, {"active": None}])
def test_answer_without_a_clear_verdict_is_no_answer(answer: dict[str, Any]) -> None:
    with pytest.raises(FetchFailed, match="'active' is missing"):
        endpoint(Web(answer)).ask("a")


def test_secret_is_not_shown() -> None:
    assert "hush" not in repr(Introspection(client_id="lake", client_secret="hush"))
