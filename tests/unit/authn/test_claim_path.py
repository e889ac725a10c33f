import pytest

from lakewarden.authn.claim_path import claim_at

CLAIMS = {
    "roles": ["a"],
    "realm_access": {"roles": ["b"]},
    "https://example.org/roles": ["c"],
    "resource_access": {"my.client": {"roles": ["d"]}, "my": {"client": {"roles": ["never"], "more": 1}}},
    "empty": {},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("roles", ["a"]),
        ("realm_access.roles", ["b"]),
        ("https://example.org/roles", ["c"]),
        ("resource_access.my.client.roles", ["d"]),
        ("resource_access.my.client.more", 1),
        ("realm_access", {"roles": ["b"]}),
        ("empty.roles", None),
        ("roles.a", None),
        ("nothing", None),
        ("nothing.at.all", None),
        ("", None),
        (".", None),
        ("realm_access.", None),
        (".roles", None),
    ],
)
def test_claim_is_found_by_its_dotted_path(path: str, found: object) -> None:
    assert claim_at(CLAIMS, path) == found


@pytest.mark.parametrize("claims", [None, 7, "roles", ["roles"], True])
def test_what_is_no_object_holds_no_claim(claims: object) -> None:
    assert claim_at(claims, "roles") is None
