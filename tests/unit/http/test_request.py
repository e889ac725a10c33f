from typing import Any

import msgspec
import pytest

from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.errors import BadRequest
from lakewarden.http.request import ApiRequest, clean_request_id


class Shape(msgspec.Struct):
    name: str
    count: int = 0


def request(body: bytes = b"", **query: str) -> ApiRequest:
    context = RequestContext(Caller(PrincipalId("oidc~a")), "1")
    return ApiRequest(
        method="POST", path="/x", context=context, query=query, headers={}, body=body, base_uri="http://x"
    )


def test_decode_ignores_members_that_are_not_asked_for() -> None:
    assert request(b'{"name": "a", "count": 9007199254740993, "more": [1]}').decode(Shape) == Shape("a", 2**53 + 1)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "The request body is empty: a JSON object is expected"),
        (b"{", "Malformed JSON"),
        (b"[]", "Expected `object`"),
        (b"{}", "missing required field `name`"),
        (b'{"name": 7}', r"\$\.name"),
        (b'{"name": "\xff"}', "Malformed JSON"),
        (b'{"name": "a", "count": 1.5}', r"\$\.count"),
        (b'{"name": "a", "more": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_decode_says_what_is_wrong_and_where(body: bytes, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        request(body).decode(Shape)


@pytest.mark.parametrize(("query", "flag"), [({}, None), ({"f": "true"}, True), ({"f": "FALSE"}, False)])
def test_flag(*, query: dict[str, Any], flag: bool | None) -> None:
    assert request(**query).flag("f") is flag


@pytest.mark.parametrize("value", ["", "1", "yes", "true "])
def test_flag_is_true_or_false(value: str) -> None:
    with pytest.raises(BadRequest, match="true or false"):
        request(f=value).flag("f")


@pytest.mark.parametrize("given", ["a", "A-1.b:c_d", "x" * 64])
def test_a_harmless_request_id_is_kept(given: str) -> None:
    assert clean_request_id(given) == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "ä", "a\r\nb", "<b>"])
def test_a_harmful_request_id_is_replaced(given: str) -> None:
    assert clean_request_id(given) not in {given, clean_request_id(given)}
