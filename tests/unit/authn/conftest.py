"""For the tests of the verifier: an identity provider in memory, and a clock that moves when told to."""

import pytest

from lakewarden.authn.chain import AuthenticatorChain
from lakewarden.authn.provider import OidcProvider
from tests.unit.authn.identity_provider import ISSUER, FakeClock, FakeIdentityProvider, chain_of


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def idp() -> FakeIdentityProvider:
    provider = FakeIdentityProvider()
    provider.add_key("first")
    return provider


@pytest.fixture
def provider() -> OidcProvider:
    return OidcProvider(id="oidc", issuer=ISSUER, audiences=("lakewarden",))


@pytest.fixture
def authenticator(idp: FakeIdentityProvider, provider: OidcProvider, clock: FakeClock) -> AuthenticatorChain:
    return chain_of([provider], fetch=idp.fetch, clock=clock)
