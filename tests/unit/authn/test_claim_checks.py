import pytest

from lakewarden.authn.claim_checks import verify_claims
from lakewarden.authn.provider import TokenRules
from lakewarden.errors import NotAuthorized

BASE = {"iss": "https://a", "exp": 1_800_003_600, "sub": "s-1"}
RULES = TokenRules(("https://a",))


@pytest.mark.parametrize("issuer", ["https://b", "", 7, None])
def test_verified_claims_of_another_issuer_are_refused(issuer: object) -> None:
    with pytest.raises(NotAuthorized, match=r"is not trusted|lacks the claim 'iss'"):
        verify_claims(BASE | {"iss": issuer}, RULES, now=lambda: 1_800_000_000.0)
