from typing import Any

import pytest

from lakewarden.authn.claims import principal_of, verify_claims
from lakewarden.authn.oidc import OidcProvider
from lakewarden.errors import NotAuthorized

BASE = {"iss": "https://a", "exp": 1_800_003_600, "sub": "s-1"}
PROVIDER = OidcProvider(id="oidc", issuer="https://a", audiences=())


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
    assert principal_of(BASE | claims, PROVIDER).name == name


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
    assert principal_of(BASE | claims, PROVIDER).email == email


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
    assert principal_of(BASE | claims, PROVIDER).kind == kind


def test_subject_is_the_first_usable_claim_in_the_configured_order() -> None:
    assert principal_of(BASE | {"oid": "o-1"}, PROVIDER).id == "oidc~o-1"
    assert principal_of(BASE | {"oid": ""}, PROVIDER).id == "oidc~s-1"
    assert principal_of(BASE | {"oid": 7}, PROVIDER).id == "oidc~s-1"


@pytest.mark.parametrize("subject", [None, "", 7, "a\x00b", "a\nb", "x" * 256, ["s"]])
def test_subject_that_is_not_usable_is_refused(subject: object) -> None:
    with pytest.raises(NotAuthorized, match="names no subject: it needs the claim 'oid' or 'sub'"):
        principal_of(BASE | {"sub": subject}, PROVIDER)


def test_expiry_beyond_any_calendar_is_capped() -> None:
    assert principal_of(BASE | {"exp": 10**400}, PROVIDER).expires_at == 253_402_300_799.0


@pytest.mark.parametrize("issuer", ["https://b", "", 7, None])
def test_verified_claims_of_another_issuer_are_refused(issuer: object) -> None:
    with pytest.raises(NotAuthorized, match=r"does not trust|lacks the claim 'iss'"):
        verify_claims(BASE | {"iss": issuer}, PROVIDER, now=lambda: 1_800_000_000.0)
