from dataclasses import replace
from typing import Any

import pytest

from lakewarden.authn.interface import VerifiedToken
from lakewarden.authn.provider import OidcProvider
from lakewarden.authn.verified_token import seconds, verified_token_of
from lakewarden.errors import NotAuthorized

BASE = {"iss": "https://a", "exp": 1_800_003_600, "sub": "s-1"}
PROVIDER = OidcProvider(id="oidc", issuer="https://a", audiences=())


def described(claims: dict[str, Any], provider: OidcProvider = PROVIDER) -> VerifiedToken:
    return verified_token_of(claims, provider, expires_at=1_800_003_600.0)


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"name": "Ada Lovelace", "given_name": "x"}, "Ada Lovelace"),
        ({"given_name": "Ada", "family_name": "Lovelace", "preferred_username": "ada"}, "Ada Lovelace"),
        ({"family_name": "Lovelace"}, "Lovelace"),
        ({"app_displayname": "Loader", "preferred_username": "x"}, "Loader"),
        ({"preferred_username": "ada", "client_id": "console"}, "ada"),
        ({"client_id": "spark"}, "spark"),
        ({"azp": "spark"}, "spark"),
        ({}, None),
        ({"name": "  ", "preferred_username": "ada"}, "ada"),
        ({"name": ["Ada"], "preferred_username": "ada"}, "ada"),
        ({"name": "A\x00d\na"}, "Ada"),
        ({"name": "A" * 5000}, "A" * 255),
    ],
)
def test_name_is_the_best_that_the_token_offers(claims: dict[str, Any], name: str | None) -> None:
    assert described(BASE | claims).name == name


@pytest.mark.parametrize(
    ("claims", "email"),
    [
        ({"email": "a@x.org", "upn": "u@x.org"}, "a@x.org"),
        ({"upn": "u@x.org"}, "u@x.org"),
        ({"preferred_username": "p@x.org"}, "p@x.org"),
        ({"preferred_username": "ada"}, None),
        ({}, None),
    ],
)
def test_email_is_the_first_address(claims: dict[str, Any], email: str | None) -> None:
    assert described(BASE | claims).email == email


@pytest.mark.parametrize(
    ("claims", "kind"),
    [
        ({"client_id": "s-1"}, "application"),
        ({"azp": "s-1"}, "application"),
        ({"cid": "s-1"}, "application"),
        ({"client_id": "spark", "preferred_username": "service-account-spark"}, "application"),
        ({"idtyp": "app", "azp": "other"}, "application"),
        ({"gty": "client-credentials"}, "application"),
        ({"client_id": "console"}, "human"),
        ({"client_id": "s-1", "email": "a@x.org"}, "human"),
        ({"client_id": "s-1", "preferred_username": "ada"}, "human"),
        ({}, "human"),
    ],
)
def test_kind_tells_applications_from_people(claims: dict[str, Any], kind: str) -> None:
    assert described(BASE | claims).kind == kind


def test_subject_is_the_first_usable_claim_in_the_configured_order() -> None:
    assert described(BASE | {"oid": "o-1"}).id == "oidc~o-1"
    assert described(BASE | {"oid": ""}).id == "oidc~s-1"
    assert described(BASE | {"oid": 7}).id == "oidc~s-1"


@pytest.mark.parametrize("subject", [None, "", 7, "a\x00b", "a\nb", "x" * 256, ["s"]])
def test_subject_that_is_not_usable_is_refused(subject: object) -> None:
    with pytest.raises(NotAuthorized, match="names no subject: it needs the claim 'oid' or 'sub'"):
        described(BASE | {"sub": subject})


@pytest.mark.parametrize(("exp", "expected"), [(1, 1.0), (1.9, 1.0), (10**400, 253_402_300_799.0)])
def test_expiry_is_whole_seconds_and_capped_at_the_end_of_any_calendar(exp: float, expected: float) -> None:
    assert seconds(exp) == expected


@pytest.mark.parametrize(
    ("claims", "roles"),
    [
        ({"realm_access": {"roles": ["admin", "reader"]}}, ("admin", "reader")),
        ({"realm_access": {"roles": "admin"}}, ("admin",)),
        ({"realm_access": {"roles": "two words"}}, ("two words",)),
        ({"realm_access.roles": ["flat"]}, ("flat",)),
        ({"realm_access": {"roles": ["b", "a", "b"]}}, ("b", "a")),
        ({}, ()),
        ({"realm_access": None}, ()),
        ({"realm_access": ["roles"]}, ()),
        ({"realm_access": {"roles": None}}, ()),
        ({"realm_access": {"roles": {"admin": True}}}, ()),
        ({"realm_access": {"roles": 7}}, ()),
        ({"realm_access": {"roles": True}}, ()),
        ({"realm_access": {"roles": [7, None, ["x"], {"a": 1}, "", "ok"]}}, ("ok",)),
        ({"realm_access": {"roles": ["a\x00b", "a\nb", "\u202eevil", "ok"]}}, ("ok",)),
        ({"realm_access": {"roles": ["x" * 255, "y" * 256]}}, ("x" * 255,)),
        ({"realm_access": {"roles": [f"r{n}" for n in range(256)] * 2}}, tuple(f"r{n}" for n in range(256))),
    ],
)
def test_roles_are_what_the_configured_claim_lists(claims: dict[str, Any], roles: tuple[str, ...]) -> None:
    provider = replace(PROVIDER, roles_claim="realm_access.roles")

    assert described(BASE | claims, provider).token_roles == roles


def test_a_token_with_too_many_roles_is_refused_by_name_of_its_claim() -> None:
    provider = replace(PROVIDER, roles_claim="realm_access.roles")

    with pytest.raises(NotAuthorized, match=r"lists 1000 roles in its claim 'realm_access.roles': at most 256"):
        described(BASE | {"realm_access": {"roles": [f"r{n}" for n in range(1000)]}}, provider)


def test_roles_are_none_without_a_configured_claim() -> None:
    assert described(BASE | {"roles": ["admin"]}).token_roles == ()


def test_configured_name_and_email_claims_go_before_the_usual_ones() -> None:
    provider = replace(PROVIDER, name_claim="person.display", email_claim="contact")
    usual = {"name": "Ada", "email": "a@x.org"}

    own = described(BASE | usual | {"person": {"display": "Countess"}, "contact": "c@x.org"}, provider)
    assert (own.name, own.email) == ("Countess", "c@x.org")
    fallen_back = described(BASE | usual | {"person": 7, "contact": ["x"]}, provider)
    assert (fallen_back.name, fallen_back.email) == ("Ada", "a@x.org")
