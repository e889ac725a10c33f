import base64

import pytest

from lakewarden.errors import BadRequest
from lakewarden.paging import MAX_PAGE_SIZE, Page, next_token


def test_neither_parameter_asks_for_everything() -> None:
    assert Page.parse({}) == Page(None, None)
    assert Page.parse({"parent": "a"}) == Page(None, None)


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ({"pageToken": ""}, Page(None, MAX_PAGE_SIZE)),
        ({"pageSize": "3"}, Page(None, 3)),
        ({"pageToken": "", "pageSize": "3"}, Page(None, 3)),
        ({"pageSize": "999999999"}, Page(None, MAX_PAGE_SIZE)),
        ({"pageSize": "24623931167"}, Page(None, MAX_PAGE_SIZE)),
    ],
)
def test_either_parameter_asks_for_a_page(query: dict[str, str], page: Page) -> None:
    assert Page.parse(query) == page


@pytest.mark.parametrize("key", ["", "a", "ünïcödé 🦆", "a/b+c%", "x" * 700])
def test_a_token_leads_behind_its_key(key: str) -> None:
    token = next_token(key)
    assert token.replace("-", "").replace("_", "").isalnum()
    assert Page.parse({"pageToken": token, "pageSize": "2"}) == Page(key, 2)


@pytest.mark.parametrize("plain", [b"", b"2a", b"1\xff", b"1a\x00"])
def test_a_token_that_is_none_of_ours_is_refused(plain: bytes) -> None:
    token = base64.urlsafe_b64encode(plain).decode() or "="
    with pytest.raises(BadRequest, match="pageToken"):
        Page.parse({"pageToken": token})


@pytest.mark.parametrize("token", ["x", "****", "MQ==\n", "é", "a" * 5])
def test_a_token_that_is_no_base64_is_refused(token: str) -> None:
    with pytest.raises(BadRequest, match="not issued by this server"):
        Page.parse({"pageToken": token})


@pytest.mark.parametrize("size", ["", "0", "-1", "+1", "1.0", "x", "٣", " 1", "0000000000"])
def test_a_size_that_is_no_number_from_one_is_refused(size: str) -> None:
    with pytest.raises(BadRequest, match="pageSize"):
        Page.parse({"pageSize": size})
